#ifndef ANNULUS_TUNED_CONFIG_FAMILIES_H_
#define ANNULUS_TUNED_CONFIG_FAMILIES_H_

// All families whose configurations a tuned result may name: those that compute problems
// (attention/kernels/family.h), and those that compute requests of batches (batch/batch_config.h).

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "attention/kernels/config_family.h"

namespace annulus::tuned {

// In the order that decides between equal entries.
std::span<const attention::ConfigFamily* const> config_families();

// The family of that name, or null.
const attention::ConfigFamily* find_config_family(std::string_view name);

// The index of a family in config_families().
int order_of(const attention::ConfigFamily& family);

// "wgmma, wgmma8, mma, decode, chunk_wgmma and chunk".
std::string config_family_names();

// The configuration of a text, legal or not, of any of them.
std::optional<attention::KernelConfig> parse_any_config(std::string_view text);

}  // namespace annulus::tuned

#endif  // ANNULUS_TUNED_CONFIG_FAMILIES_H_
