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

const Family* find_family(std::string_view name) { return find_by_name(kFamilies, name); }

std::string family_names() { return names_of(kFamilies); }

}  // namespace annulus::attention
