#ifndef ANNULUS_PATTERN_LEAF_KEYS_H_
#define ANNULUS_PATTERN_LEAF_KEYS_H_

// What a range of queries sees through one leaf, as intervals of keys, by the arithmetic of the
// leaf: the cost is the intervals of the answer, never the keys or the pairs.

#include <cstdint>
#include <vector>

#include "annulus/pattern.h"
#include "pattern/interval.h"
#include "pattern/node.h"

namespace annulus::pattern {

enum class Wanted { kAny, kAll };

// The keys of the universe that any or all of the queries see; exact. Replaces *out.
// Requires: a leaf, check_head passes, queries is not empty; positions stay within +-2^60.
void leaf_keys(const Node& leaf, std::int64_t head, const PatternContext& context, Interval queries,
               Interval universe, Wanted wanted, IntervalSet* out);

// Some leaves see one key in every few: their exact answer would have more intervals than a caller
// has blocks. Where the pattern of keys repeats within `grain` keys, this gives instead
//   all    keys that all queries see, perhaps not all of them
//   any    the keys that some query sees, and perhaps others
//   mixed  part of what is in any and not in all: any `grain` neighbours in one of its intervals
//          hold a visible and an invisible pair. No two intervals touch.
// and true. False, with nothing written, where the exact answer is as short.
bool coarse_leaf_keys(const Node& leaf, std::int64_t head, Interval queries, Interval universe,
                      std::int64_t grain, IntervalSet* all, IntervalSet* any, IntervalSet* mixed);

// The document of q, whose starts are given: from its start, or the least number, to the next
// one's, or the largest number.
Interval document_of(const std::vector<std::int64_t>& starts, std::int64_t q);

}  // namespace annulus::pattern

#endif  // ANNULUS_PATTERN_LEAF_KEYS_H_
