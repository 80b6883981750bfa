#ifndef ANNULUS_PATTERN_STRIPED_H_
#define ANNULUS_PATTERN_STRIPED_H_

// Counts the keys that one query sees if leaves see every r-th key. Intervals would have one entry
// for each of these keys. Instead, a piece of keys has one bit for each residue of a common period,
// so the time grows with the number of pieces.

#include <cstdint>
#include <vector>

#include "annulus/pattern.h"
#include "pattern/interval.h"
#include "pattern/node_pointer.h"

namespace annulus::pattern {

class StripedCounter {
 public:
  // Evaluates the batch that the context names, like an Evaluator.
  StripedCounter(const Pattern& pattern, const PatternContext& context);

  // The number of keys of the universe that query position q of `head` sees. Requires: check_head
  // passes, positions within +-2^60.
  std::int64_t count(std::int64_t head, std::int64_t q, Interval universe);

 private:
  // The keys k from the end of the previous piece to before `end` for which bit k mod period of
  // `residues` is set.
  struct Piece {
    std::int64_t end;
    std::uint64_t residues;
  };
  using Pieces = std::vector<Piece>;  // cover the universe from its begin to its end
  // A node with the memory of its result.
  struct Step {
    const Node* node = nullptr;
    std::vector<std::size_t> children;
    Pieces pieces;
  };

  std::size_t add(const Node& node);
  bool is_striped(const Node& leaf) const;
  std::uint64_t residues_of(std::int64_t begin, std::int64_t period, std::int64_t width) const;
  void find(Step& step, std::int64_t head, std::int64_t q, Interval universe);
  void find_striped(const Node& leaf, std::int64_t head, std::int64_t q, Interval universe,
                    Pieces* out);
  void fill(Interval keys, std::uint64_t residues, Interval universe, Pieces* out) const;
  void join(bool is_and, const Pieces& a, const Pieces& b, Pieces* out) const;

  Pattern pattern_;
  PatternContext context_;
  std::int64_t period_ = 1;  // at most 64
  std::uint64_t every_ = 1;  // all residues
  std::vector<Step> steps_;  // children before their parent, the root last
  std::int64_t work_ = 0;    // steps of base/work.h that the current evaluation has taken
  Pieces scratch_;
  IntervalSet keys_;
};

}  // namespace annulus::pattern

#endif  // ANNULUS_PATTERN_STRIPED_H_
