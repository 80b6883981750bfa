#include "tuned/config_families.h"

#include <algorithm>
#include <vector>

#include "attention/kernels/family.h"
#include "batch/batch_config.h"

namespace annulus::tuned {
namespace {

using attention::ConfigFamily;

std::vector<const ConfigFamily*> all_families() {
  std::vector<const ConfigFamily*> all(attention::families().begin(), attention::families().end());
  all.insert(all.end(), batch::batch_kernels().begin(), batch::batch_kernels().end());
  return all;
}

}  // namespace

std::span<const ConfigFamily* const> config_families() {
  static const std::vector<const ConfigFamily*> all = all_families();
  return all;
}

const ConfigFamily* find_config_family(std::string_view name) {
  return attention::find_by_name(config_families(), name);
}

int order_of(const ConfigFamily& family) {
  const auto all = config_families();
  return static_cast<int>(std::ranges::find(all, &family) - all.begin());
}

std::string config_family_names() { return attention::names_of(config_families()); }

std::optional<attention::KernelConfig> parse_any_config(std::string_view text) {
  const ConfigFamily* family = find_config_family(attention::family_name(text));
  return family == nullptr ? std::nullopt : attention::parse_config(text, *family);
}

}  // namespace annulus::tuned
