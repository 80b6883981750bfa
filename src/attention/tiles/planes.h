#ifndef ANNULUS_ATTENTION_TILES_PLANES_H_
#define ANNULUS_ATTENTION_TILES_PLANES_H_

// Which heads of which batches of a problem differ in what they see. A plane is what one distinct
// head of one distinct batch sees. Lists and counts of a pattern are made once for each plane.
//
//   const Planes planes(problem);
//   planes.each(placement, R, C, [&](Classifier& classifier, std::int64_t head) {
//     ...                                  // planes 0, 1, ... in turn
//     return true;                         // go on
//   });

#include <cstdint>
#include <vector>

#include "annulus/problem.h"
#include "pattern/batches.h"
#include "pattern/classify.h"

namespace annulus::attention {

class Planes {
 public:
  // Throws Error{kInvalidArgument} if layouts of the pattern are made for another number of heads.
  explicit Planes(const Problem& problem);

  std::int64_t count() const { return count_; }
  // The number of distinct batches: batch b has the planes of batch b mod this number.
  std::int64_t batches() const { return std::ssize(seen_.of_batch); }
  // The number of distinct heads in any batch: head h of a batch sees what head h mod this number
  // sees.
  std::int64_t heads() const { return heads_; }

  std::int64_t plane_of(std::int64_t batch, std::int64_t head) const {
    const auto which =
        static_cast<std::size_t>(seen_.of_batch[static_cast<std::size_t>(batch % batches())]);
    return firsts_[which] + head % distinct_[which];
  }
  // How many pairs of a head and a batch have each plane. A problem without batches counts as one
  // batch.
  std::vector<double> times() const;

  // The pattern if all batches see the same; it may be a band. Null if batches differ.
  const Pattern* only_pattern() const {
    return seen_.patterns.size() == 1 ? seen_.patterns.data() : nullptr;
  }

  // Calls f(classifier, head) for each plane in turn, until one call returns false. Returns whether
  // no call did.
  template <typename F>
  bool each(const pattern::Placement& placement, std::int64_t block_rows,
            std::int64_t block_columns, const F& f) const {
    for (std::size_t which = 0; which < seen_.patterns.size(); ++which) {
      pattern::Classifier classifier(seen_.patterns[which], placement, block_rows, block_columns);
      for (std::int64_t head = 0; head < distinct_[which]; ++head) {
        if (!f(classifier, head)) return false;
      }
    }
    return true;
  }
  // Calls f(pattern, head) for each plane. No classifier is made.
  template <typename F>
  void each_pattern(const F& f) const {
    for (std::size_t which = 0; which < seen_.patterns.size(); ++which) {
      for (std::int64_t head = 0; head < distinct_[which]; ++head) f(seen_.patterns[which], head);
    }
  }

 private:
  std::int64_t batch_ = 0;
  std::int64_t all_heads_ = 0;
  pattern::BatchPatterns seen_;
  std::vector<std::int64_t> distinct_;  // the number of distinct heads of each pattern
  std::vector<std::int64_t> firsts_;    // the first plane of each pattern
  std::int64_t count_ = 0;
  std::int64_t heads_ = 1;
};

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_TILES_PLANES_H_
