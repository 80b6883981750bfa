#include "pattern/classify.h"

#include <algorithm>
#include <bit>

#include "base/fail.h"
#include "base/work.h"
#include "pattern/node.h"

namespace annulus::pattern {
namespace {

// With these bounds the ends of rows, blocks and segments stay below 2^50. So sums of positions
// cannot overflow, and leaves get only positions within +-2^60, as their interface states (Question
// in leaves/leaf.h).
constexpr std::int64_t kMaxLength = std::int64_t{1} << 48;
constexpr std::int64_t kMaxBlock = std::int64_t{1} << 30;

void check_block(const char* name, std::int64_t value) {
  if (value < 1 || value > kMaxBlock) {
    base::fail(ErrorCode::kInvalidArgument, "blocks of {} {}; it must be in [1, 2^30]", value,
               name);
  }
}

}  // namespace

PatternContext Extent::context() const {
  std::int64_t end = 0;
  if (__builtin_add_overflow(k_position, seq_k, &end)) return {};
  return {std::max<std::int64_t>(end, 0), 0};
}

void check_extent(const Extent& extent) {
  const auto length = [](std::int64_t value) { return value >= 0 && value <= kMaxLength; };
  const auto position = [](std::int64_t value) {
    return value >= -kMaxLength && value <= kMaxLength;
  };
  if (!length(extent.seq_q) || !length(extent.seq_k) || !position(extent.q_position) ||
      !position(extent.k_position)) {
    base::fail(ErrorCode::kInvalidArgument,
               "Sq {}, Sk {} at positions {} and {}: lengths are in [0, 2^48], positions in +-2^48",
               extent.seq_q, extent.seq_k, extent.q_position, extent.k_position);
  }
}

Extent Extent::whole(std::int64_t seq_q, std::int64_t seq_k) {
  Extent extent = {seq_q, seq_k, 0, 0};
  check_extent(extent);  // checked before the difference of two lengths, which may be too large
  extent.q_position = seq_k - seq_q;
  return extent;
}

void check_layouts(const Node& node, const Extent& extent) {
  if (extent.seq_q == 0 || extent.seq_k == 0) return;
  const auto covers = [](Interval made_for, Interval asked) {
    return intersection(made_for, asked) == asked;
  };
  const auto text_of = [](Interval positions) {
    return positions.empty() ? "none" : fmt::format("{} to {}", positions.begin, positions.end - 1);
  };
  each_leaf(node, [&](const leaves::Leaf& leaf) {
    const leaves::Structure structure = leaves::structure_of(leaf);
    if (structure.layout == nullptr || structure.outside == OutsideLayout::kHidden) return;
    const Extent of = Extent::whole(structure.layout->seq_q, structure.layout->seq_k);
    if (covers(of.queries(), extent.queries()) && covers(of.keys(), extent.keys())) return;
    base::fail(
        ErrorCode::kInvalidArgument,
        "the pattern has a layout of Sq {} x Sk {}, outside of which the problem of Sq {} x Sk {} "
        "has positions. Positions of the layout: queries {}, keys {}; of the problem: queries {}, "
        "keys {}. Give a layout for the lengths of the problem, or the positions (q0, k0) that the "
        "problem has in the layout; or, if queries and keys outside of the layout are to be "
        "hidden, write blocks(\"file\", hide_outside), in C++ OutsideLayout::kHidden",
        of.seq_q, of.seq_k, extent.seq_q, extent.seq_k, text_of(of.queries()), text_of(of.keys()),
        text_of(extent.queries()), text_of(extent.keys()));
  });
}

std::int64_t total_length(const std::vector<Segment>& segments) {
  std::int64_t total = 0;
  for (const Segment& segment : segments) total += segment.length;
  return total;
}

std::vector<Classifier::Piece> Classifier::pieces_of(const std::vector<Segment>& segments) {
  std::vector<Piece> pieces;
  std::int64_t begin = 0;
  for (const Segment& segment : segments) {
    check_extent({segment.length, 0, segment.start, 0});
    if (segment.length == 0) continue;
    pieces.push_back({{segment.start, segment.start + segment.length}, begin});
    begin += segment.length;
    if (begin > kMaxLength) {
      base::fail(ErrorCode::kInvalidArgument, "the segments have more than 2^48 rows together");
    }
  }
  return pieces;
}

Classifier::Classifier(const Pattern& pattern, const Placement& placement, std::int64_t block_rows,
                       std::int64_t block_columns)
    : block_rows_(block_rows),
      block_columns_(block_columns),
      q_pieces_(pieces_of(placement.q)),
      k_pieces_(pieces_of(placement.k)),
      evaluator_(pattern, placement.context),
      alike_(evaluator_.pattern().node()) {
  check_block("rows", block_rows);
  check_block("columns", block_columns);
  seq_q_ = total_length(placement.q);
  seq_k_ = total_length(placement.k);
  rows_ = seq_q_ / block_rows + (seq_q_ % block_rows != 0);
  columns_ = seq_k_ / block_columns + (seq_k_ % block_columns != 0);
  if (std::has_single_bit(static_cast<std::uint64_t>(block_columns))) {
    block_shift_ = std::countr_zero(static_cast<std::uint64_t>(block_columns));
  }
}

void Classifier::cut(const std::vector<Piece>& pieces, Interval rows, std::vector<Piece>* out) {
  out->clear();
  for (const Piece& piece : pieces) {
    const Interval part = intersection(rows, {piece.begin, piece.begin + piece.positions.size()});
    if (part.empty()) continue;
    const std::int64_t first = piece.positions.begin + part.begin - piece.begin;
    out->push_back({{first, first + part.size()}, part.begin});
  }
}

// The keys that all of the row's queries see, the keys that any of them sees, and the keys in
// doubt, as rows of K and not as positions.
const Bounds& Classifier::bounds_of(std::int64_t head, Interval rows) {
  cut(q_pieces_, rows, &row_pieces_);
  if (k_pieces_.size() == 1 && k_pieces_[0].positions.begin == 0 && row_pieces_.size() == 1) {
    return evaluator_.range(head, row_pieces_[0].positions, k_pieces_[0].positions, block_columns_);
  }
  const auto shift = [](const IntervalSet& positions, std::int64_t by, IntervalSet* out) {
    for (const Interval& interval : positions) {
      append(out, {interval.begin + by, interval.end + by});
    }
  };
  const auto gather = [&](const Interval& queries, Bounds* bounds) {
    bounds->all.clear();
    bounds->any.clear();
    bounds->doubt.clear();
    bounds->mixed.clear();
    for (const Piece& keys : k_pieces_) {
      const Bounds& seen = evaluator_.range(head, queries, keys.positions, block_columns_);
      const std::int64_t by = keys.begin - keys.positions.begin;
      shift(seen.all, by, &bounds->all);
      shift(seen.any, by, &bounds->any);
      shift(seen.doubt, by, &bounds->doubt);
      for (const Interval& mixed : seen.mixed) {
        // Drop the last key. Otherwise an interval that ends with this piece would touch an
        // interval that begins with the next piece, and append() would join them although their
        // keys are not neighbours. Shortening is always safe: a block that is no longer in `mixed`
        // is only checked pair by pair.
        append(&bounds->mixed, {mixed.begin + by, mixed.end + by - (k_pieces_.size() > 1)});
      }
    }
  };
  gather(row_pieces_[0].positions, &bounds_);
  for (std::size_t piece = 1; piece < row_pieces_.size(); ++piece) {
    gather(row_pieces_[piece].positions, &more_bounds_);
    intersect(bounds_.all, more_bounds_.all, &scratch_);
    bounds_.all.swap(scratch_);
    unite(bounds_.any, more_bounds_.any, &scratch_);
    bounds_.any.swap(scratch_);
    unite(bounds_.doubt, more_bounds_.doubt, &scratch_);
    bounds_.doubt.swap(scratch_);
  }
  // A block that is mixed for one piece of the queries is mixed for all of them, so `mixed` of the
  // first piece stays right. The sets of the other pieces would only save time.
  return bounds_;
}

// The blocks that hold some of these keys.
Interval Classifier::block_columns_of(const Interval& keys) const {
  return {block_of(keys.begin), block_of(keys.end - 1) + 1};
}

// The blocks whose existing keys are all in the set.
void Classifier::full_columns(const IntervalSet& keys, IntervalSet* out) const {
  out->clear();
  for (const Interval& interval : keys) {
    append(out, {block_of(interval.begin + block_columns_ - 1),
                 interval.end == seq_k_ ? columns_ : block_of(interval.end)});
  }
}

// Adds the blocks of these keys, if every query sees all of them and no query sees another key. A
// block is partial only if an interval ends within it. An interval may begin in the block in which
// the previous interval ended.
void Classifier::add_agreed(const IntervalSet& keys) {
  std::int64_t added = 0;  // blocks before this one are added already
  for (const Interval& seen : keys) {
    const auto [first, end] = block_columns_of(seen);
    // Whether the last block is partial.
    const bool cut = seen.end < std::min(end * block_columns_, seq_k_);
    std::int64_t column = std::max(first, added);
    if (column == first && (seen.begin > first * block_columns_ || (cut && end - first == 1))) {
      add(first, first + 1, true);
      ++column;
    }
    if (column < end - cut) add(column, end - cut, false);
    if (cut && column < end) add(end - 1, end, true);
    added = end;
  }
}

// Finds the blocks that hold keys in doubt, except blocks that are known to be mixed. A block lies
// within `mixed` only as a whole, since it is as long as the grain.
void Classifier::find_doubtful(const Bounds& bounds) {
  doubtful_.clear();
  for (const Interval& keys : bounds.doubt) append(&doubtful_, block_columns_of(keys));
  if (bounds.mixed.empty()) return;
  mixed_.clear();
  for (const Interval& keys : bounds.mixed) {
    append(&mixed_, {block_of(keys.begin + block_columns_ - 1), block_of(keys.end)});
  }
  subtract(doubtful_, mixed_, &scratch_);
  doubtful_.swap(scratch_);
}

const std::vector<BlockRun>& Classifier::row(std::int64_t head, std::int64_t row) {
  runs_.clear();
  if (seq_k_ == 0) return runs_;
  const Bounds& bounds =
      bounds_of(head, {row * block_rows_, std::min((row + 1) * block_rows_, seq_q_)});
  if (bounds.doubt.empty() && bounds.all == bounds.any) {
    add_agreed(bounds.all);
    return runs_;
  }
  touched_.clear();
  for (const Interval& keys : bounds.any) append(&touched_, block_columns_of(keys));
  full_columns(bounds.all, &full_);
  subtract(touched_, full_, &partial_);
  find_doubtful(bounds);

  // Merges the full and the partial blocks, which are disjoint ascending sets. Doubtful blocks
  // among the partial ones are resolved one by one.
  auto full = full_.begin();
  auto doubtful = doubtful_.begin();
  for (const Interval& partial : partial_) {
    for (; full != full_.end() && full->begin < partial.begin; ++full) {
      add(full->begin, full->end, false);
    }
    std::int64_t column = partial.begin;
    for (; doubtful != doubtful_.end() && doubtful->begin < partial.end; ++doubtful) {
      if (column < doubtful->begin) add(column, doubtful->begin, true);
      column = std::max(column, doubtful->begin);
      const std::int64_t end = std::min(doubtful->end, partial.end);
      while (column < end) resolve(head, bounds, column++);
      if (doubtful->end > partial.end)
        break;  // the next partial interval may hold the rest of
                // this one
    }
    if (column < partial.end) add(column, partial.end, true);
  }
  for (; full != full_.end(); ++full) add(full->begin, full->end, false);
  return runs_;
}

bool Classifier::repeats(std::int64_t row) const {
  if (q_pieces_.size() != 1) return false;
  const std::int64_t first = q_pieces_[0].positions.begin;
  return alike_.see_the_same(
      {first + (row - 1) * block_rows_, first + std::min((row + 1) * block_rows_, seq_q_)});
}

std::int64_t Classifier::alike_rows(std::int64_t row) const {
  if (q_pieces_.size() != 1 || k_pieces_.size() != 1) return 1;
  const std::int64_t begin = row * block_rows_;
  const std::int64_t alike =
      alike_.from(q_pieces_[0].positions.begin + begin, k_pieces_[0].positions);
  return std::max<std::int64_t>(1, std::min(alike, seq_q_ - begin) / block_rows_);
}

// Whether the bounds alone prove that the block has both a visible and an invisible pair.
bool Classifier::truly_mixed(const Bounds& bounds, Interval keys) {
  if (touches(bounds.all, keys) && !covers(bounds.any, keys)) return true;
  const IntervalSet block = {keys};
  IntervalSet rest;
  subtract(block, bounds.doubt, &scratch_);  // the keys that are not in doubt
  intersect(scratch_, bounds.any, &rest);    // those that some query sees
  subtract(rest, bounds.all, &scratch_);     // those that not every query sees
  return !scratch_.empty();
}

// Classifies a block that the bounds leave open. First it evaluates the corners, which decide
// nearly every block that a diagonal crosses. Then it evaluates rows until it has found both a
// visible and an invisible pair. Of rows whose counts are an arithmetic progression it evaluates
// only the first and the last, because the counts of the others lie between theirs.
void Classifier::resolve(std::int64_t head, const Bounds& bounds, std::int64_t column) {
  const Interval keys = {column * block_columns_, std::min((column + 1) * block_columns_, seq_k_)};
  cut(k_pieces_, keys, &key_pieces_);
  const std::int64_t corners_q[] = {row_pieces_.front().positions.begin,
                                    row_pieces_.back().positions.end - 1};
  const std::int64_t corners_k[] = {key_pieces_.front().positions.begin,
                                    key_pieces_.back().positions.end - 1};
  bool seen = false;
  bool unseen = false;
  base::charge(4 * evaluator_.pattern().node().leaves);
  for (const std::int64_t q : corners_q) {
    for (const std::int64_t k : corners_k) (evaluator_.visible(head, q, k) ? seen : unseen) = true;
  }
  if ((seen && unseen) || truly_mixed(bounds, keys)) return add(column, column + 1, true);
  const auto look = [&](std::int64_t q, const Interval& positions) {
    const std::int64_t count = size(evaluator_.row(head, q, positions));
    seen = seen || count > 0;
    unseen = unseen || count < positions.size();
  };
  for (const Piece& columns : key_pieces_) {
    for (const Piece& rows : row_pieces_) {
      for (std::int64_t q = rows.positions.begin; q < rows.positions.end && !(seen && unseen);) {
        const std::int64_t next =
            std::min(q + alike_.from(q, columns.positions), rows.positions.end);
        look(q, columns.positions);
        if (next - q > 1) look(next - 1, columns.positions);
        q = next;
      }
    }
  }
  if (seen) add(column, column + 1, unseen);
}

}  // namespace annulus::pattern
