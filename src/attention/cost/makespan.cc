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

// The works of a launch in their order.
class Works {
 public:
  Works(const TileCounts& tiles, const Dealing& dealing)
      : together_(tiles.copies % dealing.cluster == 0),
        heads_(works_of_heads(tiles, dealing.longest_first, together_ ? 1 : dealing.cluster)),
        groups_(std::ssize(heads_) * (together_ ? tiles.copies / dealing.cluster : tiles.copies)),
        rows_(heads_.empty() ? 0 : std::ssize(heads_.front())),
        set_(std::max<std::int64_t>(1, std::min(dealing.set, groups_))) {}

  std::int64_t count() const { return groups_ * rows_; }
  // The tiles of work `index`, which find_work in templates/kernels/wgmma/work.cuh finds as well.
  std::int64_t length(std::int64_t index) const {
    const std::int64_t set = index / (set_ * rows_);
    const std::int64_t size = std::min(set_, groups_ - set * set_);
    const std::int64_t in_set = index - set * set_ * rows_;
    const std::int64_t group = set * set_ + in_set % size;
    return heads_[static_cast<std::size_t>(group % std::ssize(heads_))]
                 [static_cast<std::size_t>(in_set / size)];
  }

 private:
  const bool together_;  // CTAs of a cluster have heads of their own, else rows
  const std::vector<std::vector<std::int32_t>> heads_;
  const std::int64_t groups_;
  const std::int64_t rows_;
  const std::int64_t set_;
};

std::int64_t slots_of(const Dealing& dealing) {
  return std::max<std::int64_t>(1, dealing.slots / dealing.cluster);
}

}  // namespace

double makespan(const TileCounts& tiles, const Dealing& dealing, double frame, double step) {
  if (tiles.lengths.empty()) {
    const double total =
        static_cast<double>(tiles.ctas) * frame + static_cast<double>(tiles.tiles()) * step;
    const double longest = frame + static_cast<double>(tiles.longest_row) * step;
    const double share = 1.0 / static_cast<double>(dealing.slots);
    return std::max(longest, total * share + longest * (1.0 - share) / 2);
  }
  const Works works(tiles, dealing);
  if (const auto& lengths = tiles.lengths; std::ranges::all_of(
          lengths, [&](std::int32_t length) { return length == lengths.front(); })) {
    const std::int64_t rounds = (works.count() + slots_of(dealing) - 1) / slots_of(dealing);
    return static_cast<double>(rounds) * (frame + static_cast<double>(lengths.front()) * step);
  }
  Slots slots(dealing.deal, slots_of(dealing));
  for (std::int64_t at = 0; at < works.count(); ++at) {
    slots.take(frame + static_cast<double>(works.length(at)) * step);
  }
  return slots.last();
}

bool drawing_pays(const TileCounts& tiles, const Dealing& dealing, double frame, double step,
                  double clear) {
  const std::int64_t slots = slots_of(dealing);
  const auto count = static_cast<double>(tiles.ctas) / dealing.cluster;
  if (count <= static_cast<double>(slots)) return false;
  const double mean =
      (static_cast<double>(tiles.ctas) * frame + static_cast<double>(tiles.tiles()) * step) /
      static_cast<double>(dealing.slots);
  if (tiles.lengths.empty()) {
    // Lengths are not known. Many works of unlike lengths end unevenly by about half a work a set.
    const double longest = frame + static_cast<double>(tiles.longest_row) * step;
    return longest * count > 1.02 * mean * static_cast<double>(slots) && longest > 2 * clear;
  }
  const Works works(tiles, dealing);
  if (works.count() == 0) return false;
  const auto cycles = [&](std::int64_t work) {
    return frame + static_cast<double>(works.length(work)) * step;
  };
  double busiest = 0;
  for (std::int64_t at = 0; at < works.count(); at += slots) busiest += cycles(at);
  // Drawn works end within the last one of each other, about.
  const double drawn = std::max(cycles(0), mean + cycles(works.count() - 1) / 2);
  return busiest - drawn > clear + 0.005 * mean;
}

}  // namespace annulus::attention
