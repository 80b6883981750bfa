#include "attention/tiles/planes.h"

#include <algorithm>

namespace annulus::attention {

Planes::Planes(const Problem& problem)
    : batch_(problem.batch),
      all_heads_(problem.heads),
      seen_(pattern::batch_patterns(problem.pattern, problem.batch)),
      heads_(problem.pattern.distinct_heads(problem.heads)) {
  for (const Pattern& one : seen_.patterns) {
    firsts_.push_back(count_);
    distinct_.push_back(one.distinct_heads(problem.heads));
    count_ += distinct_.back();
  }
}

std::vector<double> Planes::times() const {
  std::vector<double> times(static_cast<std::size_t>(count_));
  const std::int64_t batch = std::max<std::int64_t>(1, batch_);
  for (std::int64_t b = 0; b < batches(); ++b) {
    const std::int64_t like_it = (batch - b + batches() - 1) / batches();
    for (std::int64_t head = 0; head < all_heads_; ++head) {
      times[static_cast<std::size_t>(plane_of(b, head))] += static_cast<double>(like_it);
    }
  }
  return times;
}

}  // namespace annulus::attention
