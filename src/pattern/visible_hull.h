#ifndef ANNULUS_PATTERN_VISIBLE_HULL_H_
#define ANNULUS_PATTERN_VISIBLE_HULL_H_

// The first and the last key that any query sees, exactly.

#include <cstdint>

#include "annulus/pattern.h"
#include "pattern/classify.h"

namespace annulus::pattern {

// The smallest interval of rows of K that holds `hull` and every key that some query of the
// placement sees as `head`; empty if there is neither. A few evaluations are enough if the first
// and the last queries see the first and the last keys; otherwise the time grows with the
// logarithms of both lengths. It grows with the number of queries only if operands of an & or |
// leave doubt. Requires: the pattern is the one of a single batch (Evaluator).
Interval visible_hull(const Pattern& pattern, std::int64_t head, const Placement& placement,
                      Interval hull = {});

}  // namespace annulus::pattern

#endif  // ANNULUS_PATTERN_VISIBLE_HULL_H_
