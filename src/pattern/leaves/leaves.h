#ifndef ANNULUS_PATTERN_LEAVES_LEAVES_H_
#define ANNULUS_PATTERN_LEAVES_LEAVES_H_

// The variant of all leaves, and functions that call the functions of pattern/leaves/leaf.h.

#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

// This includes the headers of all leaves.
#define ANNULUS_LEAF(Name)
#include "pattern/leaves/leaves.def"
#undef ANNULUS_LEAF

namespace annulus::pattern::leaves {

// A std::variant of all these types except the first, which is not a leaf: leaves.def puts a
// comma before each type.
template <typename... Leaves>
struct AnyOf;
template <typename First, typename... Leaves>
struct AnyOf<First, Leaves...> {
  using type = std::variant<Leaves...>;
};

#define ANNULUS_LEAF(Name) , Name
using Leaf = AnyOf<void
#include "pattern/leaves/leaves.def"
                   >::type;
#undef ANNULUS_LEAF

// The words of all leaves, in the order of leaves.def.
const std::vector<Word>& all_words();

// How many functions of leaves the text of a mask calls, counting each call, and how many of these
// functions are long.
std::int64_t leaf_calls(std::string_view mask);
std::int64_t long_calls(std::string_view mask);

// The functions of leaf.h, for any leaf.
bool visible(const Leaf& leaf, const Pair& pair);
// Replaces *out. The universe may be empty.
void keys_of(const Leaf& leaf, const Question& question, Wanted wanted, IntervalSet* out);
// Replaces the sets.
bool coarse_keys_of(const Leaf& leaf, const Question& question, std::int64_t grain, CoarseKeys out);
std::optional<Stripes> stripes_of(const Leaf& leaf, std::int64_t head, std::int64_t q);
std::int64_t alike_rows_of(const Leaf& leaf);
Structure structure_of(const Leaf& leaf);

}  // namespace annulus::pattern::leaves

#endif  // ANNULUS_PATTERN_LEAVES_LEAVES_H_
