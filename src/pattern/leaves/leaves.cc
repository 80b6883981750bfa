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

namespace {

// Calls f(function) for each function of a leaf that the text calls, until one returns true;
// whether one did.
template <typename F>
bool any_call(std::string_view mask, const F& f) {
  constexpr std::string_view kCall = "m.";
  for (std::size_t at = mask.find(kCall); at != mask.npos; at = mask.find(kCall, at + 1)) {
    const std::string_view call = mask.substr(at + kCall.size());
    const std::string_view name = call.substr(0, call.find('('));
    const auto found = std::ranges::find(all_functions(), name, &DeviceFunction::name);
    if (found != all_functions().end() && f(*found)) return true;
  }
  return false;
}

}  // namespace

bool calls_long_function(std::string_view mask) {
  return any_call(mask, [](const DeviceFunction& function) { return function.is_long; });
}

std::int64_t leaf_calls(std::string_view mask) {
  std::int64_t calls = 0;
  any_call(mask, [&](const DeviceFunction&) {
    ++calls;
    return false;
  });
  return calls;
}

}  // namespace annulus::pattern::leaves
