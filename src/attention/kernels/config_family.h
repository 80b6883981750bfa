#ifndef ANNULUS_ATTENTION_KERNELS_CONFIG_FAMILY_H_
#define ANNULUS_ATTENTION_KERNELS_CONFIG_FAMILY_H_

// The record of a family's configurations: what the code for their texts, for tuned entries and for
// searches needs. Every record of kernels begins with a ConfigFamily: Family in family.h, and the
// records of kernels that compute something other than a Problem. A KernelConfig points to its
// ConfigFamily.
//
// Every function takes only configurations of its own family, and only legal ones unless its
// comment states otherwise. All functions are pure.

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

// Takes configurations that differ only in the number of resident CTAs, from the largest number
// down to one.
using AddCandidates = std::function<void(std::span<const KernelConfig> alternatives)>;

struct ConfigFamily {
  const char* name;  // the first word of a configuration's text
  // The revision is raised with every change that makes the family's kernels faster or slower.
  // Tuned results of another revision may not hold for this one.
  int revision;
  const char* instructions;        // for messages: "cp.async and mma.sync run on", followed by an
                                   // architecture
  std::int64_t element_bytes = 2;  // bytes of an element of Q, K and V
  std::span<const ConfigField> fields;  // the names of KernelConfig::own
  // Why a configuration is not legal, or nullopt if it is. The configuration may have any numbers
  // that a text can hold.
  std::optional<std::string> (*why_illegal)(const KernelConfig& config, const Dims& dims,
                                            jit::Arch arch);
  // Why ptxas may have to spill registers of a legal configuration, or nullopt. The heuristic never
  // takes such a configuration. A tuner tries it, and keeps it if it spills at most
  // kMaxSpilledBytes and is still faster. Null: no legal configuration spills.
  std::optional<std::string> (*why_spills)(const KernelConfig& config, const Dims& dims,
                                           jit::Arch arch) = nullptr;
  // Passes every configuration that a search may try to `add`. Some of them may be illegal.
  void (*enumerate)(const AddCandidates& add);
  CtaShape (*cta)(const KernelConfig& config);
  Footprint (*footprint)(const KernelConfig& config, const Dims& dims);
};

// The record of that name among pointers to records of families, or null.
template <typename Families>
auto find_by_name(const Families& families, std::string_view name) {
  const auto found = std::ranges::find_if(families, [&](const auto* f) { return name == f->name; });
  return found == std::ranges::end(families) ? nullptr : *found;
}

// The names of the families for messages: "wgmma, wgmma8 and mma".
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
