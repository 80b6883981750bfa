#ifndef ANNULUS_LAYOUT_H_
#define ANNULUS_LAYOUT_H_

// Operations on block layouts: set operations, transposes and slices, another block size, a wanted
// density, statistics and differences.
//
//   BlockLayout both = intersect(a, b);
//   BlockLayout rank = slice(layout, rows_of_rank, keys_of_hop);
//   LayoutStatistics counts = statistics(rank);
//
// A layout is a set of whole blocks: blocks(unite(a, b)) sees what blocks(a) | blocks(b) sees, and
// likewise for the other operations. Partial flags follow on the safe side: a block of a result is
// full only where it is known that every pair of it is visible. Operands may be for 1 head or for
// H; a single head stands for all. The `partial` of a result is empty where no block is partial.
//
// All functions here are pure, may be called from any thread and read their operands only during
// the call. They validate operands and throw Error{kInvalidArgument}, which names the first bad
// entry or the sizes that do not fit each other, and Error{kOutOfMemory} past 2^31 kept blocks.
// Their time and memory grow with the kept blocks, the rows and the columns of operands and result,
// and a result may be much larger than its operands: those that make, compare or count a layout
// have the default WorkLimit, or that of a WorkScope (annulus/work_limit.h), and throw
// Error{kLimit, kCancelled}.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "annulus/pattern.h"
#include "annulus/types.h"
#include "annulus/work_limit.h"

namespace annulus::inline v0 {

// Borrows the arrays of a layout that somebody else holds, who must keep them as long as the view.
struct ANNULUS_EXPORT LayoutView {
  std::int64_t block_rows = 0;     // R
  std::int64_t block_columns = 0;  // C
  std::int64_t seq_q = 0;          // Sq
  std::int64_t seq_k = 0;          // Sk
  std::int64_t heads = 1;          // distinct heads
  std::span<const std::int64_t> indptr;
  std::span<const std::int32_t> indices;
  std::span<const std::uint8_t> partial;
  std::span<const std::int32_t> head_map;

  LayoutView() = default;
  LayoutView(const BlockLayout& layout);  // not explicit: a layout is a view of itself

  // What the functions of these names of BlockLayout return for the layout that is viewed.
  std::int64_t query_heads() const {
    return head_map.empty() ? heads : static_cast<std::int64_t>(head_map.size());
  }
  std::int64_t distinct_head(std::int64_t head) const {
    if (head_map.size() > 1) return head_map[static_cast<std::size_t>(head)];
    return head_map.empty() && heads > 1 ? head : head_map.empty() ? 0 : head_map[0];
  }
  std::int64_t rows() const;     // ceil(Sq / R)
  std::int64_t columns() const;  // ceil(Sk / C)
  std::span<const std::int32_t> row(std::int64_t head, std::int64_t row) const;
  // The partial flags of one row; empty where no block of the layout is partial.
  std::span<const std::uint8_t> partial_row(std::int64_t head, std::int64_t row) const;
  void validate() const;
  void validate_sizes() const;  // only R, C, Sq, Sk and heads
};

// The problem that a layout is for, and its blocks. rows = ceil(Sq / R), columns = ceil(Sk / C).
struct LayoutSizes {
  std::int64_t block_rows = 0;     // R
  std::int64_t block_columns = 0;  // C
  std::int64_t seq_q = 0;          // Sq
  std::int64_t seq_k = 0;          // Sk
  std::int64_t heads = 1;          // query heads
};
ANNULUS_EXPORT LayoutSizes sizes_of(const LayoutView& layout);

struct LayoutOptions {
  std::int64_t layer = 0;  // layer of the model: random() chooses anew in each
  int threads = 0;         // 0: one for each core, where there is work for them; 1: the caller's
  WorkLimit work = {};     // of all threads together
};

// The blocks of a pattern: those that hold a visible pair, partial where not all pairs are visible.
// Heads that the pattern cannot tell apart are stored once. Throws Error{kInvalidArgument} for
// sizes out of range and where the pattern has layouts for another number of heads or for lengths
// that do not cover these (OutsideLayout). Rows are shared out among threads; the result is the
// same bit for bit. Throws Error{kLimit, kCancelled}.
ANNULUS_EXPORT BlockLayout make_layout(const Pattern& pattern, const LayoutSizes& sizes,
                                       const LayoutOptions& options = {});

ANNULUS_EXPORT Density block_density(const LayoutView& layout);  // as for a BlockLayout

// Maps a layout's file into memory and checks it once: the arrays are the file's own pages, not a
// copy. Copies share the mapping. The file may be replaced meanwhile, as save_layout does; it must
// not be changed or shortened in place, since reading the missing part would end the process.
class ANNULUS_EXPORT MappedLayout {
 public:
  // Throws Error{kFile, kInvalidFile}, naming the first fault.
  explicit MappedLayout(const std::string& path);
  // Stays as long as this object or a copy of it.
  const LayoutView& view() const;

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};
// Writes the file that save_layout(BlockLayout, path) would write, with the same errors.
ANNULUS_EXPORT void save_layout(const LayoutView& layout, const std::string& path);

// Copies the arrays into a layout that owns them.
ANNULUS_EXPORT BlockLayout copy(const LayoutView& layout);
// Both keep the same blocks for each query head. share_heads() stores heads with the same blocks
// and flags once; part_heads() stores each query head by itself, without a head map.
ANNULUS_EXPORT BlockLayout share_heads(const LayoutView& layout);
ANNULUS_EXPORT BlockLayout part_heads(const LayoutView& layout);
// The layout of one query head.
ANNULUS_EXPORT BlockLayout head_of(const LayoutView& layout, std::int64_t head);

// Set operations. Operands agree in R, C, Sq and Sk.
ANNULUS_EXPORT BlockLayout unite(const LayoutView& a, const LayoutView& b);
ANNULUS_EXPORT BlockLayout intersect(const LayoutView& a, const LayoutView& b);
ANNULUS_EXPORT BlockLayout subtract(const LayoutView& a, const LayoutView& b);  // in a, not in b

// Row blocks become column blocks: Sq and Sk, R and C change places.
ANNULUS_EXPORT BlockLayout transpose(const LayoutView& layout);

// The part of the layout that a shard sees: row i of the result is the i-th row that the segments
// name, one segment after another, and so for columns. Segments count rows of the layout from 0 (a
// query's position is its row + Sk - Sq), in any order, aligned to nothing. A block of the result
// is kept where it holds a pair of a kept block.
ANNULUS_EXPORT BlockLayout slice(const LayoutView& layout, std::span<const Segment> rows,
                                 std::span<const Segment> columns);

// A layout of R' x C' blocks that keeps the same pairs, and as few more as whole blocks need.
ANNULUS_EXPORT BlockLayout reblock(const LayoutView& layout, std::int64_t block_rows,
                                   std::int64_t block_columns);

// Each distinct head gets round(d x rows x columns) blocks. Dropped blocks are shared out among the
// rows in proportion to the blocks that they have, added blocks in proportion to those that they
// lack. A row drops the blocks farthest from the diagonal first and adds the nearest first; of
// equally far blocks the one with the lower index is kept or added. Blocks on the diagonal and in
// column 0 are never dropped. With `within` only its blocks are added. Throws
// Error{kInvalidArgument} for d outside [0, 1], and where d is not possible, with the number of
// blocks that is.
ANNULUS_EXPORT BlockLayout with_density(const LayoutView& layout, Density d);
ANNULUS_EXPORT BlockLayout with_density(const LayoutView& layout, Density d,
                                        const LayoutView& within);

// How two layouts differ.
struct LayoutDifference {
  std::int64_t only_first = 0;  // blocks kept by the first alone, over all query heads
  std::int64_t only_second = 0;
  std::int64_t flags = 0;  // blocks kept by both and partial in one
  bool same_sizes = true;  // false: the counts are 0 and the text says which sizes differ
  // One line for each row of blocks that differs, as in "head 0 row 3: -4..7 +9 ~11": blocks that
  // only the first keeps (-), that only the second keeps (+), and whose flag differs (~). Then a
  // line with the counts. Empty: no difference.
  std::string text;
};
// At most `max_lines` lines for rows; one more says how many are left out. Throws
// Error{kInvalidArgument} if `max_lines` is negative, and as LayoutView::validate() does.
ANNULUS_EXPORT LayoutDifference difference(const LayoutView& first, const LayoutView& second,
                                           std::int64_t max_lines = 100);

struct LayoutStatistics {
  std::int64_t rows = 0;     // ceil(Sq / R)
  std::int64_t columns = 0;  // ceil(Sk / C)
  std::int64_t heads = 1;    // H; 1: any number
  std::int64_t distinct_heads = 1;
  std::int64_t kept = 0;     // blocks, over the distinct heads
  std::int64_t partial = 0;  // partial blocks among them
  Density block_density;     // of all query heads
  // Blocks of one row or column of one distinct head. Mean and ratio over all of them, empty ones
  // too.
  std::int64_t shortest_row = 0, longest_row = 0, empty_rows = 0;
  std::int64_t shortest_column = 0, longest_column = 0, empty_columns = 0;
  double row_imbalance = 0;     // longest over mean: 1 is even; 0 where nothing is kept
  double column_imbalance = 0;  // likewise
  double mean_distance = 0;     // tokens between a kept block and the diagonal, 0 on it
  std::int64_t bytes = 0;       // of the arrays
};
ANNULUS_EXPORT LayoutStatistics statistics(const LayoutView& layout);

// A pattern's density counted in whole blocks and counted pair by pair.
struct PatternStatistics {
  Density pairs;            // visible pairs over all pairs, exact
  LayoutStatistics layout;  // of its R x C blocks
  double overhead = 0;      // block density over density of pairs; 0 where nothing is visible
};
ANNULUS_EXPORT PatternStatistics statistics(const Pattern& pattern, const LayoutSizes& sizes,
                                            const LayoutOptions& options = {});

// How far information travels: entry n - 1 is the share of (row block, column block) pairs for
// which n layers carry what is in the column to the row, where each layer sees the blocks that any
// head keeps, and each row keeps what it has (the residual connection). The shares never descend.
// It takes rows x columns / 4 bytes, and for each layer a time that grows with kept blocks x
// columns / 64. Throws Error{kUnsupported} above 2^34 pairs of blocks, and Error{kInvalidArgument}
// for layers outside [1, 1024].
ANNULUS_EXPORT std::vector<double> reachability(const LayoutView& layout, int layers);

struct PictureOptions {
  std::int64_t head = 0;       // query head
  std::int64_t max_cells = 0;  // in a row and in a column; 0: 64 of a text, 256 of an SVG
};
// A title line and a grid: '#' full, '+' partial, '.' not kept. Where there are more blocks than
// cells, a cell stands for several: '#' all full, '+' all kept, '-' some, '.' none.
ANNULUS_EXPORT std::string text_picture(const LayoutView& layout,
                                        const PictureOptions& options = {});
// A picture as an SVG document; where a cell stands for several blocks, it is the darker the more
// of them are kept.
ANNULUS_EXPORT std::string svg_picture(const LayoutView& layout,
                                       const PictureOptions& options = {});

}  // namespace annulus::inline v0

#endif  // ANNULUS_LAYOUT_H_
