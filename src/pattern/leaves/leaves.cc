#include "pattern/leaves/leaves.h"

#include <algorithm>
#include <iterator>

#include "pattern/leaves/mask_writer.h"

namespace annulus::pattern::leaves {

#define ANNULUS_LEAF(Name) \
  static_assert(IsLeaf<Name>, #Name " lacks a function of pattern/leaves/leaf.h");
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

namespace {

constexpr DeviceFunction kFunctions[] = {
#define ANNULUS_COMPARED_LEAF(name, slots) functions::name,
#define ANNULUS_SEARCHED_LEAF(name, slots) functions::name,
#include "params/mask_leaves_params.h"
#undef ANNULUS_COMPARED_LEAF
#undef ANNULUS_SEARCHED_LEAF
};

// The number of those calls of leaf functions in the text that the predicate counts.
template <typename F>
std::int64_t calls(std::string_view mask, const F& is_counted) {
  constexpr std::string_view kCall = "m.";
  std::int64_t counted = 0;
  for (std::size_t at = mask.find(kCall); at != mask.npos; at = mask.find(kCall, at + 1)) {
    const std::string_view call = mask.substr(at + kCall.size());
    const std::string_view name = call.substr(0, call.find('('));
    const auto* found = std::ranges::find(kFunctions, name, &DeviceFunction::name);
    if (found != std::end(kFunctions) && is_counted(*found)) ++counted;
  }
  return counted;
}

}  // namespace

std::int64_t leaf_calls(std::string_view mask) {
  return calls(mask, [](const DeviceFunction&) { return true; });
}

std::int64_t long_calls(std::string_view mask) {
  return calls(mask, [](const DeviceFunction& function) { return function.is_long; });
}

// These functions are here and not in the header, because each file that includes the header would
// take a quarter of a second longer to compile the tables of std::visit.

bool visible(const Leaf& leaf, const Pair& pair) {
  return std::visit([&](const auto& one) { return one.visible(pair); }, leaf);
}

void keys_of(const Leaf& leaf, const Question& question, Wanted wanted, IntervalSet* out) {
  out->clear();
  if (question.universe.empty()) return;
  std::visit([&](const auto& one) { one.keys(question, wanted, out); }, leaf);
}

bool coarse_keys_of(const Leaf& leaf, const Question& question, std::int64_t grain,
                    CoarseKeys out) {
  for (IntervalSet* set : {out.all, out.any, out.mixed}) set->clear();
  return std::visit([&](const auto& one) { return one.coarse_keys(question, grain, &out); }, leaf);
}

std::optional<Stripes> stripes_of(const Leaf& leaf, std::int64_t head, std::int64_t q) {
  return std::visit([&](const auto& one) { return one.stripes(head, q); }, leaf);
}

std::int64_t alike_rows_of(const Leaf& leaf) {
  return std::visit([](const auto& one) { return one.alike_rows(); }, leaf);
}

Structure structure_of(const Leaf& leaf) {
  return std::visit([](const auto& one) { return one.structure(); }, leaf);
}

}  // namespace annulus::pattern::leaves
