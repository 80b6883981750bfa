#include "attention/cost/makespan.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <vector>

namespace annulus::attention {
namespace {

// The times at which slots become free if works are counted off: slot i of n takes works i, i + n,
// and so on.
class CountedSlots {
 public:
  explicit CountedSlots(std::int64_t slots) : ends_(static_cast<std::size_t>(slots)) {}
  void take(double cycles) {
    ends_[next_] += cycles;
    if (++next_ == ends_.size()) next_ = 0;
  }
  double last() const { return *std::ranges::max_element(ends_); }

 private:
  std::vector<double> ends_;
  std::size_t next_ = 0;
};

// The times at which slots become free if the slot that is free first takes the next work.
class FreeSlots {
 public:
  explicit FreeSlots(std::int64_t slots) : slots_(slots) {}
  void take(double cycles) {
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
  const std::int64_t slots_;
  std::priority_queue<double, std::vector<double>, std::greater<>> free_;
  double last_ = 0;
};

// The lengths of the works of each distinct head, in the order in which they are taken. `rows`
// neighbouring rows make one work, which is as long as the longest of these rows.
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

// The works of a launch in the order in which they are taken.
class Works {
 public:
  Works(const TileCounts& tiles, const Dealing& dealing)
      : together_(tiles.copies % dealing.cluster == 0),
        heads_(works_of_heads(tiles, dealing.longest_first, together_ ? 1 : dealing.cluster)),
        groups_(std::ssize(heads_) * (together_ ? tiles.copies / dealing.cluster : tiles.copies)),
        rows_(heads_.empty() ? 0 : std::ssize(heads_.front())),
        set_(std::max<std::int64_t>(1, std::min(dealing.set, groups_))),
        ahead_group_(first_ahead(dealing.deal == Deal::kStride ? HeadStart{} : dealing.head_start,
                                 groups_, set_)),
        ahead_rows_(std::min(rows_, dealing.head_start.rows)) {}

  std::int64_t count() const { return groups_ * rows_; }
  std::int64_t rows() const { return rows_; }
  std::int64_t sets() const { return (groups_ + set_ - 1) / set_; }
  // Calls take(tiles) for each work in the order of find_work in templates/kernels/wgmma/work.cuh.
  template <typename Take>
  void each(const Take& take) const {
    each_of_sets(0, ahead_group_, 0, rows_, take);
    if (ahead_group_ == groups_) return;
    each_ahead(take);
    each_of_sets(ahead_group_, groups_, ahead_rows_, rows_, take);
  }
  // The works that have a head start.
  template <typename Take>
  void each_ahead(const Take& take) const {
    each_of_rows(ahead_group_, groups_, 0, ahead_rows_, take);
  }

 private:
  template <typename Take>
  void each_of_sets(std::int64_t first, std::int64_t end, std::int64_t row, std::int64_t end_row,
                    const Take& take) const {
    for (; first < end; first += set_) {
      each_of_rows(first, std::min(end, first + set_), row, end_row, take);
    }
  }
  template <typename Take>
  void each_of_rows(std::int64_t first, std::int64_t end, std::int64_t row, std::int64_t end_row,
                    const Take& take) const {
    for (; row < end_row; ++row) {
      for (std::int64_t group = first; group < end; ++group) {
        take(heads_[static_cast<std::size_t>(group % std::ssize(heads_))]
                   [static_cast<std::size_t>(row)]);
      }
    }
  }

  const bool together_;  // CTAs of a cluster have heads of their own, else rows
  const std::vector<std::vector<std::int32_t>> heads_;
  const std::int64_t groups_;
  const std::int64_t rows_;
  const std::int64_t set_;
  const std::int64_t ahead_group_;
  const std::int64_t ahead_rows_;
};

std::int64_t slots_of(const Dealing& dealing) {
  return std::max<std::int64_t>(1, dealing.slots / dealing.cluster);
}

// By how many cycles the memory is busy with the rows that have a head start for longer than the
// slots are, or for longer than the longest of these rows takes.
double head_start_loss(const Works& works, const Dealing& dealing, double frame, double step) {
  if (dealing.head_start.empty()) return 0;
  double tiles = 0, cycles = 0, longest = 0;
  works.each_ahead([&](std::int32_t length) {
    const double each = frame + static_cast<double>(length) * step;
    tiles += length;
    cycles += each;
    longest = std::max(longest, each);
  });
  const auto sets = static_cast<double>(std::min(works.sets(), dealing.head_start.sets));
  const double missing = std::max(0.0, 1 - std::max(1.0, dealing.held_sets) / sets);
  const double busy = std::max(longest, cycles / static_cast<double>(slots_of(dealing)));
  return std::max(0.0, tiles * missing * dealing.memory_tile - busy);
}

// The cycle in which the last of the slots ends.
template <typename Slots>
double last_end(const Works& works, std::int64_t count, double frame, double step) {
  Slots slots(count);
  works.each([&](std::int32_t tiles) { slots.take(frame + static_cast<double>(tiles) * step); });
  return slots.last();
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
  const std::int64_t slots = slots_of(dealing);
  if (const auto& lengths = tiles.lengths; std::ranges::all_of(
          lengths, [&](std::int32_t length) { return length == lengths.front(); })) {
    const std::int64_t rounds = (works.count() + slots - 1) / slots;
    return static_cast<double>(rounds) * (frame + static_cast<double>(lengths.front()) * step);
  }
  return dealing.deal == Deal::kStride ? last_end<CountedSlots>(works, slots, frame, step)
                                       : last_end<FreeSlots>(works, slots, frame, step) +
                                             head_start_loss(works, dealing, frame, step);
}

bool drawing_pays(const TileCounts& tiles, const Dealing& dealing, double frame, double step,
                  double clear) {
  const std::int64_t slots = slots_of(dealing);
  const auto count = static_cast<double>(tiles.ctas) / dealing.cluster;
  if (count <= static_cast<double>(slots)) return false;
  if (tiles.lengths.empty()) {
    // The lengths are not known. Many works of different lengths end unevenly by about half a work
    // for each set.
    const double mean =
        (static_cast<double>(tiles.ctas) * frame + static_cast<double>(tiles.tiles()) * step) /
        static_cast<double>(dealing.slots);
    const double longest = frame + static_cast<double>(tiles.longest_row) * step;
    return longest * count > 1.02 * mean * static_cast<double>(slots) && longest > 2 * clear;
  }
  const Works works(tiles, dealing);
  if (works.count() == 0) return false;
  const double counted = last_end<CountedSlots>(works, slots, frame, step);
  double sum = 0, longest = 0;
  works.each([&](std::int32_t length) {
    const double cycles = frame + static_cast<double>(length) * step;
    sum += cycles;
    longest = std::max(longest, cycles);
  });
  const double mean = sum / static_cast<double>(slots);
  // Drawn works cannot end before `least`, nor after `most`: the slot that ends last took its last
  // work when all others were busy. How the works are dealt out matters only between these bounds,
  // and then a queue has to compute it.
  const double wanted = counted - clear - 0.005 * mean;
  const double least = std::max(mean, longest);
  const double most = mean + longest * (1 - 1 / static_cast<double>(slots));
  if (wanted <= least) return false;
  const double loss = head_start_loss(works, dealing, frame, step);
  return wanted > most + loss || wanted > last_end<FreeSlots>(works, slots, frame, step) + loss;
}

HeadStart choose_head_start(const TileCounts& tiles, Dealing dealing, double frame, double step) {
  // The most works that are dealt out one by one in search of a head start. In a larger launch the
  // end of the last set is a small part of the time.
  constexpr std::int64_t kMaxWorks = std::int64_t{1} << 18;
  constexpr double kLeastGain = 0.01, kGoodEnough = 1.005;
  dealing.head_start = {};
  if (tiles.lengths.empty()) return {};
  const Works works(tiles, dealing);
  const std::int64_t slots = slots_of(dealing);
  if (works.sets() < 2 || works.count() <= slots || works.count() > kMaxWorks / 8) return {};
  double sum = 0, longest = 0;
  works.each([&](std::int32_t length) {
    const double cycles = frame + static_cast<double>(length) * step;
    sum += cycles;
    longest = std::max(longest, cycles);
  });
  const double least = std::max(sum / static_cast<double>(slots), longest);
  double best = last_end<FreeSlots>(works, slots, frame, step) * (1 - kLeastGain);
  HeadStart found;
  std::int64_t tried = 0;
  for (std::int64_t sets = 2; sets <= works.sets(); ++sets) {
    for (std::int64_t rows = 1; rows < works.rows(); rows *= 2) {
      tried += works.count();
      if (best <= kGoodEnough * least || tried > kMaxWorks) return found;
      dealing.head_start = {sets, rows};
      const double cycles = makespan(tiles, dealing, frame, step);
      if (cycles >= best) continue;
      best = cycles;
      found = dealing.head_start;
    }
  }
  return found;
}

}  // namespace annulus::attention
