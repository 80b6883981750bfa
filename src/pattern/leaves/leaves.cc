#include "pattern/leaves/leaves.h"

#include <algorithm>

#include "pattern/leaves/mask_writer.h"

namespace annulus::pattern::leaves {

#define ANNULUS_LEAF(Name) \
  static_assert(IsLeaf<Name>, #Name " lacks a verb of pattern/leaves/leaf.h");
#include "pattern/leaves/leaves.def"
#undef ANNULUS_LEAF

const std::vector<Word>& all_words() {
  static const std::vector<Word> words = [] {
    std::vector<Word> all;
#define ANNULUS_LEAF(Name) all.insert(all.end(), Name::words().begin(), Name::words().end());
#include "pattern/leaves/leaves.def"
#undef ANNULUS_LEAF
    return all;
  }();
  return words;
}

const std::vector<DeviceFunction>& all_functions() {
  static const std::vector<DeviceFunction> functions = [] {
    std::vector<DeviceFunction> all;
#define ANNULUS_LEAF(Name) \
  all.insert(all.end(), Name::functions().begin(), Name::functions().end());
#include "pattern/leaves/leaves.def"
#undef ANNULUS_LEAF
    return all;
  }();
  return functions;
}

bool calls_long_function(std::string_view mask) {
  constexpr std::string_view kCall = "m.";
  for (std::size_t at = mask.find(kCall); at != mask.npos; at = mask.find(kCall, at + 1)) {
    const std::string_view call = mask.substr(at + kCall.size());
    const std::string_view name = call.substr(0, call.find('('));
    const bool is_long = std::ranges::any_of(all_functions(), [&](const DeviceFunction& function) {
      return function.is_long && function.name == name;
    });
    if (is_long) return true;
  }
  return false;
}

}  // namespace annulus::pattern::leaves
