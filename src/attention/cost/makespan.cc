#include "attention/cost/makespan.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <vector>

namespace annulus::attention {
namespace {

// The times at which slots become free.
class Slots {
 public:
  Slots(Deal deal, std::int64_t slots) : deal_(deal), slots_(slots) {
    if (deal_ == Deal::kStride) ends_.resize(static_cast<std::size_t>(slots));
  }

  void take(double cycles) {
    if (deal_ == Deal::kStride) {
      double& end = ends_[static_cast<std::size_t>(next_++ % slots_)];
      end += cycles;
      last_ = std::max(last_, end);
      return;
    }
    // Slots that were never used are free from the start, and not in the queue.
    double begin = 0;
    if (static_cast<std::int64_t>(free_.size()) == slots_) {
      begin = free_.top();
      free_.pop();
    }
    free_.push(begin + cycles);
    last_ = std::max(last_, begin + cycles);
  }
  double last() const { return last_; }

 private:
  const Deal deal_;
  const std::int64_t slots_;
  std::vector<double> ends_;
  std::priority_queue<double, std::vector<double>, std::greater<>> free_;
  std::int64_t next_ = 0;
  double last_ = 0;
};

// The lengths of the works of each distinct head in their order. `rows` neighbouring rows make one
// work, which is as long as the longest of them.
std::vector<std::vector<std::int32_t>> works_of_heads(const TileCounts& tiles, bool longest_first,
 int rows) {
  const std::int64_t row_tiles = std::max<std::int64_t>(1, tiles.row_tiles);
  const auto distinct = static_cast<std::int64_t>(tiles.lengths.size()) / row_tiles;
  std::vector<std::vector<std::int32_t>> heads(static_cast<std::size_t>(distinct));
  for (std::int64_t head = 0; head < distinct; ++head) {
    std::vector<std::int32_t>& lengths = heads[static_cast<std::size_t>(head)];
    const auto begin = tiles.lengths.begin() + head * row_tiles;
    lengths.assign(begin, begin + row_tiles);
    if (longest_first) std::ranges::sort(lengths, std::greater<>());
    std::size_t kept = 0;
    for (std::size_t at = 0; at < lengths.size(); at += static_cast<std::size_t>(rows)) {
      lengths[kept++] = lengths[at];
    }
    lengths.resize(kept);
  }
  return heads;
}

}  // namespace

double makespan(const TileCounts& tiles, const Dealing& dealing, double frame, double step) {
  const std::int64_t slots = std::max<std::int64_t>(1, dealing.slots / dealing.cluster);
  if (tiles.ctas > kMaxNamedRows) {
    const double total =
        static_cast<double>(tiles.ctas) * frame + static_cast<double>(tiles.tiles()) * step;
    const double longest = frame + static_cast<double>(tiles.longest_row) * step;
    const double share = 1.0 / static_cast<double>(dealing.slots);
    return std::max(longest, total * share + longest * (1.0 - share) / 2);
  }
  const bool heads_together = tiles.copies % dealing.cluster == 0;
  const auto heads = works_of_heads(tiles, dealing.longest_first, heads_together ? 1 : dealing.cluster);
  const auto distinct = std::ssize(heads);
  const std::int64_t groups =
      distinct * (heads_together ? tiles.copies / dealing.cluster : tiles.copies);
  const std::int64_t rows = distinct > 0 ? std::ssize(heads.front()) : 0;
  Slots taken(dealing.deal, slots);
  for (std::int64_t set = 0; set < groups; set += dealing.set) {
    const std::int64_t end = std::min(groups, set + dealing.set);
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t group = set; group < end; ++group) {
        const auto& lengths = heads[static_cast<std::size_t>(group % distinct)];
        taken.take(frame + lengths[static_cast<std::size_t>(row)] * step);
      }
    }
  }
  return taken.last();
}

}  // namespace annulus::attention
