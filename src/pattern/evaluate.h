#ifndef ANNULUS_PATTERN_EVALUATE_H_
#define ANNULUS_PATTERN_EVALUATE_H_

// Evaluates a pattern for ranges of positions, as sets of key intervals. Pairs are never evaluated
// one by one.
//
//   Evaluator evaluator(pattern, context);
//   const IntervalSet& keys = evaluator.row(head, q, {0, Sk});     // what q sees, exactly
//   const Bounds& bounds = evaluator.range(head, {qa, qb}, {0, Sk});
//
// An Evaluator owns the memory of its answers and reuses it: an answer is valid until the next call
// of the same function. Each thread needs its own; the pattern itself may be shared.

#include <cstdint>
#include <vector>

#include "annulus/pattern.h"
#include "pattern/interval.h"
#include "pattern/node_pointer.h"

namespace annulus::pattern {

// Which keys a range of query positions sees.
//   all     every query of the range sees the key
//   any     some query does
//   doubt   keys of `any` but not of `all` for which `all` and `any` are only bounds: two operands
//           of an & or | each show the key to some queries only, and it is not known whether these
//           are the same queries. All other keys are exact: in `all`, outside `any`, or seen by
//           some queries only.
//   mixed   a part of `doubt`; empty without a grain. Any `grain` neighbours in one of its
//           intervals hold both a visible and an invisible pair. No two of its intervals touch.
// Without a grain, leaves have no doubt, ~ adds none, and a range of one query has none at all.
struct Bounds {
  IntervalSet all;
  IntervalSet any;
  IntervalSet doubt;
  IntervalSet mixed;
};

class Evaluator {
 public:
  // Evaluates the batch that the context names, which a pattern with batches(...) needs. Throws
  // Error{kInvalidArgument} if the pattern has batches(...) and the context names no batch.
  explicit Evaluator(const Pattern& pattern, const PatternContext& context = {});

  // The keys of the universe that query position q of `head` sees. Throws Error{kInvalidArgument}
  // for a head that a layout does not have, and if the context lacks a number that a leaf needs.
  const IntervalSet& row(std::int64_t head, std::int64_t q, Interval universe);

  // Requires: queries is not empty. Positions and universe stay within +-2^60. With a grain (a
  // number of keys), leaves whose keys repeat within that number of keys compute bounds instead of
  // single keys, so the result has no more intervals than the universe has grains.
  const Bounds& range(std::int64_t head, Interval queries, Interval universe,
                      std::int64_t grain = 0);

  // The pattern of that batch, without batches(...).
  const Pattern& pattern() const { return pattern_; }
  const PatternContext& context() const { return context_; }
  bool visible(std::int64_t head, std::int64_t q, std::int64_t k) const;

 private:
  // A node with the memory of its results.
  struct Step {
    const Node* node = nullptr;
    std::vector<std::size_t> children;
    Bounds bounds;
    IntervalSet row;
  };
  std::size_t add(const Node& node);
  // The arguments of an evaluation, which are the same for all nodes of the tree.
  struct Question {
    std::int64_t head;
    Interval queries;
    Interval universe;
    std::int64_t grain;
  };
  void find_row(Step& step, const Question& question);
  void find_bounds(Step& step, const Question& question);
  void fold(Step& step);
  void fold_mixed(bool is_and, const Bounds& child, Bounds* bounds);

  Pattern pattern_;
  PatternContext context_;
  std::vector<Step> steps_;  // children before their parent, the root last
  std::int64_t work_ = 0;    // steps of base/work.h that the current evaluation has taken
  // Scratch memory of fold().
  IntervalSet differ_, differ_once_, differ_twice_, doubts_, more_mixed_, scratch_;
};

// Writes visible(head, q, k) for k in [k_begin, k_begin + count), one byte each, 0 or 1.
void visible_row(Evaluator* evaluator, std::int64_t head, std::int64_t q, std::int64_t k_begin,
                 std::int64_t count, std::uint8_t* out);

}  // namespace annulus::pattern

#endif  // ANNULUS_PATTERN_EVALUATE_H_
