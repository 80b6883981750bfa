#ifndef ANNULUS_TUNED_CONFIG_FAMILIES_H_
#define ANNULUS_TUNED_CONFIG_FAMILIES_H_

// All families whose configurations a tuned result may name: the families that compute problems
// (attention/kernels/family.h) and the families that compute requests of batches
// (batch/batch_config.h).

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "attention/kernels/config_family.h"

namespace annulus::tuned {

// The order decides between equal entries.
std::span<const attention::ConfigFamily* const> config_families();

// The family of that name, or null.
const attention::ConfigFamily* find_config_family(std::string_view name);

// The index of a family in config_families().
int order_of(const attention::ConfigFamily& family);

// The names of all families: "wgmma, wgmma8, mma, decode, chunk_wgmma and chunk".
std::string config_family_names();

// Parses the text of a configuration of any of these families. The configuration need not be legal.
std::optional<attention::KernelConfig> parse_any_config(std::string_view text);

}  // namespace annulus::tuned

#endif  // ANNULUS_TUNED_CONFIG_FAMILIES_H_
