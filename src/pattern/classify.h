#ifndef ANNULUS_PATTERN_CLASSIFY_H_
#define ANNULUS_PATTERN_CLASSIFY_H_

// Classifies the blocks of a problem as empty, partial or full, from intervals: the time for a row
// of blocks grows with its intervals, not with its blocks or its pairs. The classes are exact.

#include <cstdint>
#include <vector>

#include "annulus/pattern.h"
#include "pattern/evaluate.h"
#include "pattern/rows_alike.h"

namespace annulus::base {
class ThreadPool;
}

namespace annulus::pattern {

// The rectangle of positions that a problem covers. By default its queries are the last positions
// of the keys.
struct Extent {
  std::int64_t seq_q = 0;       // Sq
  std::int64_t seq_k = 0;       // Sk
  std::int64_t q_position = 0;  // position of row 0
  std::int64_t k_position = 0;  // position of column 0

  // The default positions: q0 = Sk - Sq, k0 = 0. Throws the errors of check_extent().
  static Extent whole(std::int64_t seq_q, std::int64_t seq_k);
  Interval queries() const { return {q_position, q_position + seq_q}; }
  Interval keys() const { return {k_position, k_position + seq_k}; }
  PatternContext context() const;
  friend bool operator==(const Extent&, const Extent&) = default;
};

// Throws Error{kInvalidArgument} unless lengths are in [0, 2^48] and positions within +-2^48.
void check_extent(const Extent& extent);

// Throws Error{kInvalidArgument} if a query or a key of the extent lies outside of a layout of the
// tree, unless that layout allows it (OutsideLayout). An extent without queries or keys has no
// pairs that a layout could hide, so it passes.
void check_layouts(const Node& node, const Extent& extent);

// The positions of tensors whose rows are several parts of the sequence, as in a shard of a ring:
// row i of the queries has the i-th position of the segments, one segment after another.
struct Placement {
  std::vector<Segment> q;  // starts are positions
  std::vector<Segment> k;
  PatternContext context = {};  // the context of the whole sequence

  static Placement of(const Extent& extent, const PatternContext& context) {
    return {{{extent.q_position, extent.seq_q}}, {{extent.k_position, extent.seq_k}}, context};
  }
  static Placement of(const Extent& extent) { return of(extent, extent.context()); }
};

// The number of rows of all segments.
std::int64_t total_length(const std::vector<Segment>& segments);

// Block columns [begin, end) of one row of blocks. All of them have one class; empty blocks have no
// run.
struct BlockRun {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool partial = false;  // false: every pair of the problem in these blocks is visible

  friend bool operator==(const BlockRun&, const BlockRun&) = default;
};

// Rows of R x C blocks over an extent or a placement. Block (i, j) has rows [i R, (i+1) R) and
// columns [j C, (j+1) C) of the tensors, as far as these exist. A block at the end of the tensors
// is full if all its existing pairs are visible. A block may span several segments. A classifier
// reuses its memory, so each thread needs its own.
class Classifier {
 public:
  // Throws Error{kInvalidArgument} for block sizes outside [1, 2^30] and bad extents.
  Classifier(const Pattern& pattern, const Placement& placement, std::int64_t block_rows,
             std::int64_t block_columns);
  Classifier(const Pattern& pattern, const Extent& extent, std::int64_t block_rows,
             std::int64_t block_columns)
      : Classifier(pattern, Placement::of(extent), block_rows, block_columns) {}

  std::int64_t block_rows() const { return block_rows_; }
  std::int64_t block_columns() const { return block_columns_; }
  std::int64_t rows() const { return rows_; }        // ceil(Sq / R)
  std::int64_t columns() const { return columns_; }  // ceil(Sk / C)

  // The runs of row `row` of `head`, in ascending order; neighbouring runs of one class are joined.
  // The vector is valid until the next call. Requires: 0 <= row < rows().
  const std::vector<BlockRun>& row(std::int64_t head, std::int64_t row);

  // Whether all queries of the rows row - 1 and `row` see the same keys, so that both rows have the
  // same runs. False if this is not known. Requires: 0 < row < rows().
  bool repeats(std::int64_t row) const;

  // A number n >= 1. If n > 1, the keys of all queries of the rows `row` to row + n - 1 lie between
  // fixed ends and ends that move with the query, and no end passes another (rows_alike.h). A row
  // that Sq cuts off is never one of them.
  std::int64_t alike_rows(std::int64_t row) const;

 private:
  // Rows [begin, begin + positions.size()) of a tensor, with these positions.
  struct Piece {
    Interval positions;
    std::int64_t begin = 0;
  };
  static std::vector<Piece> pieces_of(const std::vector<Segment>& segments);
  // The parts of the pieces that are among `rows` of the tensor.
  static void cut(const std::vector<Piece>& pieces, Interval rows, std::vector<Piece>* out);

  const Bounds& bounds_of(std::int64_t head, Interval queries);
  // The block column of a key. It is a shift if possible, because a division would take longer than
  // all other work for the key.
  std::int64_t block_of(std::int64_t key) const {
    return block_shift_ >= 0 ? key >> block_shift_ : key / block_columns_;
  }
  Interval block_columns_of(const Interval& keys) const;
  void full_columns(const IntervalSet& keys, IntervalSet* out) const;
  void add_agreed(const IntervalSet& keys);
  void find_doubtful(const Bounds& bounds);
  bool truly_mixed(const Bounds& bounds, Interval keys);
  void resolve(std::int64_t head, const Bounds& bounds, std::int64_t column);
  void add(std::int64_t begin, std::int64_t end, bool partial) {
    if (!runs_.empty() && runs_.back().end == begin && runs_.back().partial == partial) {
      runs_.back().end = end;
      return;
    }
    // The run is filled in place, because a processor stalls if it copies a record that it has just
    // written in smaller pieces.
    BlockRun& run = runs_.emplace_back();
    run.begin = begin;
    run.end = end;
    run.partial = partial;
  }

  std::int64_t block_rows_;
  std::int64_t block_columns_;
  int block_shift_ = -1;  // log2 of block_columns_ if that is a power of two, else -1
  std::int64_t seq_q_ = 0;
  std::int64_t seq_k_ = 0;
  std::int64_t rows_ = 0;
  std::int64_t columns_ = 0;
  std::vector<Piece> q_pieces_, k_pieces_;
  Evaluator evaluator_;
  RowsAlike alike_;
  std::vector<Piece> row_pieces_,
      key_pieces_;               // the pieces of the current row and of the current block
  Bounds bounds_, more_bounds_;  // keys as rows of K, not as positions
  IntervalSet touched_, full_, partial_, doubtful_, mixed_, scratch_;
  std::vector<BlockRun> runs_;
};

// The exact number of pairs of the extent that `head` sees. The time grows with the number of
// places where the form of rows changes (rows_alike.h), not with the number of rows.
std::int64_t visible_pairs(const Pattern& pattern, std::int64_t head, const Extent& extent,
                           const PatternContext& context);
inline std::int64_t visible_pairs(const Pattern& pattern, std::int64_t head, const Extent& extent) {
  return visible_pairs(pattern, head, extent, extent.context());
}

// Visible pairs divided by all pairs, for `heads` heads together; 0 for an empty problem. A key
// that several branches of a sum see counts as one pair.
Density density(const Pattern& pattern, const Extent& extent, std::int64_t heads,
                const PatternContext& context);
inline Density density(const Pattern& pattern, const Extent& extent, std::int64_t heads = 1) {
  return density(pattern, extent, heads, extent.context());
}

// The layout of all rows of blocks of every distinct head among `heads`, with partial flags (empty
// if no block is partial). Heads that see the same are stored once, with a head map unless all
// heads see the same. Rows and columns count from the extent's start, but blocks(layout) as an
// expression has the default positions. With a pool, rows are divided among its threads, and the
// layout is the same bit for bit. Throws Error{kInvalidArgument} if the sizes do not fit a
// BlockLayout and Error{kOutOfMemory} for more than 2^31 kept blocks.
BlockLayout make_layout(const Pattern& pattern, const Extent& extent, std::int64_t block_rows,
                        std::int64_t block_columns, std::int64_t heads,
                        const PatternContext& context, base::ThreadPool* pool = nullptr);
inline BlockLayout make_layout(const Pattern& pattern, const Extent& extent,
                               std::int64_t block_rows, std::int64_t block_columns,
                               std::int64_t heads = 1) {
  return make_layout(pattern, extent, block_rows, block_columns, heads, extent.context());
}

}  // namespace annulus::pattern

#endif  // ANNULUS_PATTERN_CLASSIFY_H_
