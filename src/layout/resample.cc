// Slices and other block sizes. Both read the layout as segments, and write blocks of another size.
// For each block of the result, the pairs that belong to full blocks are counted. The block is full
// if these are all its pairs.

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "base/work.h"
#include "layout/builder.h"

namespace annulus::layout {
namespace {

struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// Maps rows of one axis of the layout to rows of the result, in which segments are placed one after
// another.
class Axis {
 public:
  Axis(const char* what, std::span<const Segment> segments, std::int64_t length) {
    for (std::size_t i = 0; i < segments.size(); ++i) {
      const Segment& segment = segments[i];
      if (segment.start < 0 || segment.length < 0 || segment.start > length ||
          segment.length > length - segment.start) {
        base::fail(ErrorCode::kInvalidArgument,
                   "segment {} of the {} is [{}, +{}); the layout has {} of them", i, what,
                   segment.start, segment.length, length);
      }
      if (segment.length == 0) continue;
      parts_.push_back({segment.start, segment.start + segment.length, length_});
      if (__builtin_add_overflow(length_, segment.length, &length_)) {
        base::fail(ErrorCode::kInvalidArgument, "the segments of the {} have more than 2^63", what);
      }
    }
    std::stable_sort(parts_.begin(), parts_.end(),
                     [](const Part& a, const Part& b) { return a.begin < b.begin; });
    std::int64_t most = 0;
    for (const Part& part : parts_) furthest_.push_back(most = std::max(most, part.end));
  }

  std::int64_t length() const { return length_; }

  // Calls use(Range) for each piece of the result to which rows [range.begin, range.end) of the
  // layout are mapped.
  template <typename Use>
  void each(Range range, const Use& use) const {
    // furthest_ ascends, so a binary search skips all parts that end before the range.
    auto at = static_cast<std::size_t>(
        std::upper_bound(furthest_.begin(), furthest_.end(), range.begin) - furthest_.begin());
    for (; at < parts_.size() && parts_[at].begin < range.end; ++at) {
      base::charge(1);
      const Part& part = parts_[at];
      const std::int64_t begin = std::max(range.begin, part.begin);
      const std::int64_t end = std::min(range.end, part.end);
      if (begin < end) use(Range{begin - part.begin + part.local, end - part.begin + part.local});
    }
  }

  // The inverse mapping: calls use(Range) for each piece of the layout from which rows
  // [range.begin, range.end) of the result come.
  template <typename Use>
  void each_source(Range range, const Use& use) const {
    base::charge(static_cast<std::int64_t>(parts_.size()));
    for (const Part& part : parts_) {
      const std::int64_t begin = std::max(range.begin, part.local);
      const std::int64_t end = std::min(range.end, part.local + part.end - part.begin);
      if (begin < end) {
        use(Range{begin - part.local + part.begin, end - part.local + part.begin});
      }
    }
  }

 private:
  struct Part {
    std::int64_t begin = 0;  // first row in the layout
    std::int64_t end = 0;
    std::int64_t local = 0;  // first row in the result
  };
  std::vector<Part> parts_;  // sorted by begin
  // For each part, the largest end of this part and of all parts before it.
  std::vector<std::int64_t> furthest_;
  std::int64_t length_ = 0;
};

// Collects one row of blocks of the result.
class Row {
 public:
  Row(std::int64_t columns, std::int64_t block_columns, std::int64_t seq_k)
      : block_columns_(block_columns),
        seq_k_(seq_k),
        visible_(static_cast<std::size_t>(columns), kUntouched) {}

  // Adds the fact that `rows` rows see columns [range.begin, range.end), which belong to a block of
  // this class.
  void add(std::int64_t rows, Range range, Block block) {
    for (std::int64_t column = range.begin / block_columns_; column * block_columns_ < range.end;
         ++column) {
      base::charge(1);
      std::int64_t& visible = visible_[static_cast<std::size_t>(column)];
      if (visible == kUntouched) {
        visible = 0;
        touched_.push_back(column);
      }
      if (block != Block::kFull) continue;
      const Range here = columns_of(column);
      visible += rows * (std::min(here.end, range.end) - std::max(here.begin, range.begin));
    }
  }

  // Writes this row of blocks, which has `rows` rows, and begins another.
  void finish(std::int64_t rows, Builder* builder) {
    std::sort(touched_.begin(), touched_.end());
    for (const std::int64_t column : touched_) {
      std::int64_t& visible = visible_[static_cast<std::size_t>(column)];
      const Range here = columns_of(column);
      builder->add(column,
                   visible == rows * (here.end - here.begin) ? Block::kFull : Block::kPartial);
      visible = kUntouched;
    }
    touched_.clear();
    builder->end_row();
  }

 private:
  static constexpr std::int64_t kUntouched = -1;
  Range columns_of(std::int64_t column) const {
    return {column * block_columns_, std::min((column + 1) * block_columns_, seq_k_)};
  }

  std::int64_t block_columns_;
  std::int64_t seq_k_;
  std::vector<std::int64_t> visible_;  // the pairs in full blocks of each column of blocks
  std::vector<std::int64_t> touched_;  // the columns that the row has so far
};

// For each row of blocks of the result, reads the rows of blocks that its rows come from, and adds
// each of their blocks at its mapped columns. A partial block adds no visible pairs, so a block of
// the result is full only if full blocks cover it.
BlockLayout resample(const LayoutView& from, const Axis& rows, const Axis& columns,
                     std::int64_t block_rows, std::int64_t block_columns) {
  const base::Work work({}, "taking a layout apart");
  BlockLayout to;  // only the sizes are set, to count blocks and check them
  to.block_rows = block_rows;
  to.block_columns = block_columns;
  to.seq_q = rows.length();
  to.seq_k = columns.length();
  if (to.columns() > std::numeric_limits<std::int32_t>::max()) {
    base::fail(ErrorCode::kInvalidArgument, "{} columns of blocks; a layout holds fewer than 2^31",
               to.columns());
  }
  Builder builder(block_rows, block_columns, to.seq_q, to.seq_k, from.heads);
  base::expect(to.columns(), "a row of blocks");
  base::charge(to.columns());
  Row result(to.columns(), block_columns, to.seq_k);
  for (std::int64_t head = 0; head < from.heads; ++head) {
    for (std::int64_t row = 0; row < to.rows(); ++row) {
      const Range here = {row * block_rows, std::min((row + 1) * block_rows, to.seq_q)};
      rows.each_source(here, [&](Range source) {
        base::charge(1);
        for (std::int64_t old = source.begin / from.block_rows; old * from.block_rows < source.end;
             ++old) {
          const std::int64_t shared = std::min(source.end, (old + 1) * from.block_rows) -
                                      std::max(source.begin, old * from.block_rows);
          for (std::int64_t at = begin_of(from, head, old); at < begin_of(from, head, old + 1);
               ++at) {
            const std::int64_t key =
                from.indices[static_cast<std::size_t>(at)] * from.block_columns;
            columns.each({key, std::min(key + from.block_columns, from.seq_k)},
                         [&](Range range) { result.add(shared, range, block_at(from, at)); });
          }
          base::charge(1 + begin_of(from, head, old + 1) - begin_of(from, head, old));
        }
      });
      result.finish(here.end - here.begin, &builder);
    }
  }
  return builder.finish(from.head_map);
}

}  // namespace
}  // namespace annulus::layout

namespace annulus::inline v0 {

BlockLayout slice(const LayoutView& from, std::span<const Segment> rows,
                  std::span<const Segment> columns) {
  from.validate();
  return layout::resample(from, layout::Axis("rows", rows, from.seq_q),
                          layout::Axis("columns", columns, from.seq_k), from.block_rows,
                          from.block_columns);
}

BlockLayout reblock(const LayoutView& from, std::int64_t block_rows, std::int64_t block_columns) {
  from.validate();
  constexpr std::int64_t kMax = std::int64_t{1} << 30;
  if (block_rows < 1 || block_columns < 1 || block_rows > kMax || block_columns > kMax) {
    base::fail(ErrorCode::kInvalidArgument, "blocks of {} x {}; both sizes are in [1, 2^30]",
               block_rows, block_columns);
  }
  const Segment rows = {0, from.seq_q};
  const Segment columns = {0, from.seq_k};
  return layout::resample(from, layout::Axis("rows", {&rows, 1}, from.seq_q),
                          layout::Axis("columns", {&columns, 1}, from.seq_k), block_rows,
                          block_columns);
}

}  // namespace annulus::inline v0
