#include "attention/kernels/family.h"

namespace annulus::attention {
namespace {

constexpr const Family* kFamilies[] = {
#define FAMILY(name) &name##_family,
#include "attention/kernels/families.def"
#undef FAMILY
};

}  // namespace

std::span<const Family* const> families() { return kFamilies; }

const Family& family_of(const KernelConfig& config) {
  return static_cast<const Family&>(*config.family);
}

int order_of(const ConfigFamily& family) {
  int order = 0;
  while (kFamilies[order] != &family) ++order;
  return order;
}

const Family* find_family(std::string_view name) {
  for (const Family* family : kFamilies) {
    if (name == family->name) return family;
  }
  return nullptr;
}

std::string family_names() {
  std::string names;
  for (std::size_t i = 0; i < std::size(kFamilies); ++i) {
    const bool last = i + 1 == std::size(kFamilies);
    if (i > 0) names += last ? " and " : ", ";
    names += kFamilies[i]->name;
  }
  return names;
}

}  // namespace annulus::attention
