#ifndef ANNULUS_ATTENTION_KERNELS_CONFIG_FAMILY_H_
#define ANNULUS_ATTENTION_KERNELS_CONFIG_FAMILY_H_

// The record of a family's configurations: what their texts, tuned entries and a search over them
// have to know. A record of kernels begins with one (Family in family.h, and those of kernels that
// compute something other than a problem), and a KernelConfig points to it.
//
// Every function gets only configurations of its own family, and, unless it says otherwise, legal
// ones. All are pure.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "attention/kernels/kernel_config.h"

namespace annulus::attention {

// Takes configurations that differ in nothing but the number of resident CTAs, from many down to
// one.
using AddCandidates = std::function<void(std::span<const KernelConfig> alternatives)>;

struct ConfigFamily {
  const char* name;  // the first word of a configuration's text
  // Raised with every change that makes the family's kernels faster or slower: tuned results of
  // another revision say little about this one.
  int revision;
  const char* instructions;        // for people: "cp.async and mma.sync run on" some architecture
  std::int64_t element_bytes = 2;  // of an element of Q, K and V
  std::span<const ConfigField> fields;  // the names of KernelConfig::own
  // Why a configuration is not legal, or nothing. The configuration may have any numbers that a
  // text can hold.
  std::optional<std::string> (*why_illegal)(const KernelConfig& config, const Dims& dims,
                                            jit::Arch arch);
  // Why ptxas may have to spill registers of a legal configuration, or nothing. The heuristic never
  // takes such a one; a tuner tries it, and keeps it if it spills at most kMaxSpilledBytes and is
  // faster all the same. Null: legal configurations spill nothing.
  std::optional<std::string> (*why_spills)(const KernelConfig& config, const Dims& dims,
                                           jit::Arch arch) = nullptr;
  // Passes every configuration that a search may look at, and perhaps illegal ones, to `add`.
  void (*enumerate)(const AddCandidates& add);
  CtaShape (*cta)(const KernelConfig& config);
  Footprint (*footprint)(const KernelConfig& config, const Dims& dims);
};

// The one of that name among pointers to records of families, or null.
template <typename Families>
auto find_by_name(const Families& families, std::string_view name) {
  const auto found = std::ranges::find_if(families, [&](const auto* f) { return name == f->name; });
  return found == std::ranges::end(families) ? nullptr : *found;
}

// Their names for people: "wgmma, wgmma8 and mma".
template <typename Families>
std::string names_of(const Families& families) {
  std::string names;
  std::size_t left = std::ranges::size(families);
  for (const auto* family : families) {
    if (!names.empty()) names += left == 1 ? " and " : ", ";
    names += family->name;
    --left;
  }
  return names;
}

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_KERNELS_CONFIG_FAMILY_H_
