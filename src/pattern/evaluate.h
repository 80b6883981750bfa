#ifndef ANNULUS_PATTERN_EVALUATE_H_
#define ANNULUS_PATTERN_EVALUATE_H_

// A pattern over ranges of positions, as sets of key intervals: no pair is ever looked at alone.
//
//   Evaluator evaluator(pattern);
//   const IntervalSet& keys = evaluator.row(head, q, {0, Sk});     // what q sees, exactly
//   const Bounds& bounds = evaluator.range(head, {qa, qb}, {0, Sk});
//
// An Evaluator owns the memory of its answers and reuses it: an answer lives until the next call
// of the same function. One per thread; the pattern itself may be shared.

#include <cstdint>
#include <vector>

#include "annulus/pattern.h"
#include "pattern/interval.h"
#include "pattern/node.h"

namespace annulus::pattern {

// Which keys a range of query positions sees.
//   all     every query of the range sees the key
//   any     some query does
//   doubt   keys of `any` but not of `all` for which the two are only a bound: two operands of an
//           & or | each see the key from some queries only, and whether from the same ones is not
//           known. All other keys are exact: in `all`, outside `any`, or seen by some queries only.
// Leaves have no doubt, ~ adds none, and a range of one query has none at all.
struct Bounds {
  IntervalSet all;
  IntervalSet any;
  IntervalSet doubt;
};

class Evaluator {
 public:
  explicit Evaluator(Pattern pattern);

  // The keys of the universe that query position q of `head` sees.
  // Throws Error{kInvalidArgument} for a head that a layout does not have.
  const IntervalSet& row(std::int64_t head, std::int64_t q, Interval universe);

  // Requires: queries is not empty. Positions and universe stay within +-2^60.
  const Bounds& range(std::int64_t head, Interval queries, Interval universe);

  const Pattern& pattern() const { return pattern_; }

 private:
  // A node with the memory of its answers; children come before their parent.
  struct Step {
    const Node* node = nullptr;
    std::vector<std::size_t> children;
    Bounds bounds;
    IntervalSet row;
  };
  std::size_t add(const Node& node);
  void fold(Step* step);

  Pattern pattern_;
  std::vector<Step> steps_;
  IntervalSet mixed_, mixed_once_, mixed_twice_, doubts_, scratch_;  // of fold
};

// The document of q, whose starts are given: from its start, or the least number, to the next
// one's, or the largest number.
Interval document_of(const std::vector<std::int64_t>& starts, std::int64_t q);

// visible(head, q, k) for k in [k_begin, k_begin + count), one byte each, 0 or 1.
void visible_row(Evaluator* evaluator, std::int64_t head, std::int64_t q, std::int64_t k_begin,
                 std::int64_t count, std::uint8_t* out);

}  // namespace annulus::pattern

#endif  // ANNULUS_PATTERN_EVALUATE_H_
