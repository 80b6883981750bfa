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
// have the default WorkLimit, or that of a WorkScope (annulus/types.h), and throw
// Error{kLimit, kCancelled}.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "annulus/pattern.h"
#include "annulus/types.h"

namespace annulus::inline v0 {

class Device;  // annulus/device.h

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

// A cache of layouts. Lengths matter only through the size of the block grid: all lengths that need
// the same blocks share one layout, so a decode that grows by a token finds its layout again until
// a new block begins.
//
//   LayoutCache cache;
//   const LayoutQuery local(causal() & window(4095, 0), 128, 128);       // once
//   std::shared_ptr<const GridLayout> found = cache.get(local, Sq, Sk);  // at each step
//
// The cache is bounded in bytes and entries. A layout that it gave out stays as long as somebody
// holds it, also when the cache has dropped it. Any thread may call anything at any time: of
// several that ask for a missing layout one makes it and the others wait for it.

// The blocks of a pattern on a grid of positions: block (i, j) has the queries at positions
// q_position + [i R, (i + 1) R) and the keys at k_position + [j C, (j + 1) C). The kernel masks
// what is outside the lengths that were asked for. For all lengths that share the layout, a block
// with a visible pair is kept, and a full block has no hidden pair.
struct GridLayout {
  BlockLayout layout;           // its Sq and Sk are whole blocks
  std::int64_t q_position = 0;  // a multiple of R, at or before Sk - Sq
  std::int64_t k_position = 0;  // 0
  // The first block row of a problem whose first query is at this position.
  std::int64_t row_of(std::int64_t position) const {
    return (position - q_position) / layout.block_rows;
  }
};

// Everything that a layout depends on except the lengths. Immutable; copies share.
class ANNULUS_EXPORT LayoutQuery {
 public:
  // Throws Error{kInvalidArgument} for sizes out of range and where the pattern has layouts for
  // another number of heads.
  LayoutQuery(const Pattern& pattern, std::int64_t block_rows, std::int64_t block_columns,
              std::int64_t heads = 1, std::int64_t layer = 0);

  // The key of the layout for these lengths. Two keys are equal exactly where the pattern (with its
  // layouts by content), the block sizes, the heads and the grid are equal, and for patterns with
  // random() also the layer and the number of its column blocks. Throws Error{kInvalidArgument} for
  // lengths outside [0, 2^48].
  std::string key(std::int64_t seq_q, std::int64_t seq_k) const;

 private:
  friend class LayoutCache;
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

struct LayoutCacheLimits {
  std::int64_t bytes = std::int64_t{256} << 20;  // that the kept layouts may take together
  std::int64_t entries = 512;
};

struct LayoutCacheCounters {
  std::int64_t hits = 0;       // kept already
  std::int64_t waits = 0;      // another thread was making it
  std::int64_t misses = 0;     // made for this call
  std::int64_t failures = 0;   // misses where making the layout threw
  std::int64_t evictions = 0;  // layouts dropped for newer ones
  std::int64_t too_large = 0;  // misses whose layout is larger than the limit: given out, not kept
  std::int64_t bytes = 0;      // kept now
  std::int64_t entries = 0;
};

class ANNULUS_EXPORT LayoutCache {
 public:
  explicit LayoutCache(const LayoutCacheLimits& limits = {});
  ~LayoutCache();
  LayoutCache(const LayoutCache&) = delete;
  LayoutCache& operator=(const LayoutCache&) = delete;

  // Never null. Throws Error{kInvalidArgument} where a layout of the pattern does not cover the
  // lengths (OutsideLayout), and what making the layout throws, to every thread that waited for it;
  // the next call tries again. A thread that waited for one whose limit or flag ended it makes the
  // layout itself, within its own limit.
  std::shared_ptr<const GridLayout> get(const LayoutQuery& query, std::int64_t seq_q,
                                        std::int64_t seq_k, const WorkLimit& limit = {});

  LayoutCacheCounters counters() const;
  void clear();  // forgets all entries; counters stay

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The blocks of a pattern, found by kernels on a device.

// The layout that make_layout (annulus/layout.h) makes on the host, bit for bit. A block is
// classified by its ranges of positions where causal, windows, sinks, first globals, documents and
// leaves of blocks allow that, and pair by pair where they do not. So it is worth its time for
// patterns whose blocks are mixed in other ways, and on GPUs that are idle. Compiles a kernel for
// each structure of an expression, uses the default stream, allocates on the device and waits.
// Throws Error{kInvalidArgument} as make_layout, Error{kUnsupported} for a sum, for blocks(), for
// lengths above 2^30 and for more than 2^28 random choices, Error{kOutOfMemory}, Error{kCompile},
// Error{kDevice}.
ANNULUS_EXPORT BlockLayout make_layout(const Device& device, const Pattern& pattern,
                                       const LayoutSizes& sizes, const LayoutOptions& options = {});

// Layouts in the formats of other libraries. Each format has a `to` and a `from` function, which
// lose nothing: `from` reads what `to` gives back to the same blocks and flags for each query head,
// and `to` writes what `from` accepts back, up to the order in which a list names its blocks.
// Arrays are row-major, by query head first; head maps are not part of them (share_heads() finds
// equal heads again). Formats without partial blocks get their flags in one more array, which may
// be left out: then all blocks are full.
//
// `from` functions validate everything and throw Error{kInvalidArgument} that names the first bad
// entry; `to` functions validate the layout, and throw Error{kUnsupported} where a format cannot
// hold it. All are pure and may be called from any thread. An array may be much larger than the
// layout: they have the default WorkLimit, or that of a WorkScope (annulus/types.h), and throw
// Error{kLimit, kCancelled}.

// A mask of blocks, [heads, rows, columns]: 0 not kept, 1 full, 2 partial. A bool mask is such an
// array as well.
ANNULUS_EXPORT BlockLayout from_mask(const LayoutSizes& sizes, std::span<const std::uint8_t> mask);
ANNULUS_EXPORT std::vector<std::uint8_t> to_mask(const LayoutView& layout);

// A bit for each block, [heads, rows, ceil(columns / 32)] words, lowest bit first; bits beyond the
// columns are 0. `partial` has the same form; its bits are among those of `kept`. Empty: no block
// is partial.
struct BitsetArrays {
  std::vector<std::uint32_t> kept, partial;
};
ANNULUS_EXPORT BlockLayout from_bitset(const LayoutSizes& sizes,
                                       std::span<const std::uint32_t> kept,
                                       std::span<const std::uint32_t> partial = {});
ANNULUS_EXPORT BitsetArrays to_bitset(const LayoutView& layout);

// Compressed sparse rows of blocks (CSR of a matrix of blocks, BSR of one of pairs): indptr
// [heads rows + 1], indices [kept] ascending in each row, partial [kept] 0 or 1, or empty.
struct CsrArrays {
  std::vector<std::int64_t> indptr;
  std::vector<std::int32_t> indices;
  std::vector<std::uint8_t> partial;
};
ANNULUS_EXPORT BlockLayout from_csr(const LayoutSizes& sizes, std::span<const std::int64_t> indptr,
                                    std::span<const std::int32_t> indices,
                                    std::span<const std::uint8_t> partial = {});
ANNULUS_EXPORT BlockLayout from_csr(const LayoutSizes& sizes, std::span<const std::int32_t> indptr,
                                    std::span<const std::int32_t> indices,
                                    std::span<const std::uint8_t> partial = {});
ANNULUS_EXPORT CsrArrays to_csr(const LayoutView& layout);

// Coordinates [kept] in any order, no block twice. `heads` may be empty where there is one head.
struct CooArrays {
  std::vector<std::int32_t> heads, rows, columns;
  std::vector<std::uint8_t> partial;
};
ANNULUS_EXPORT BlockLayout from_coo(const LayoutSizes& sizes, std::span<const std::int32_t> heads,
                                    std::span<const std::int32_t> rows,
                                    std::span<const std::int32_t> columns,
                                    std::span<const std::uint8_t> partial = {});
ANNULUS_EXPORT CooArrays to_coo(const LayoutView& layout);

// Lists of chosen blocks, [heads, rows, k], in any order, no block twice in a list; -1 is no block.
// partial [heads, rows, k] or empty.
struct TopKArrays {
  std::int64_t k = 0;
  std::vector<std::int32_t> indices;
  std::vector<std::uint8_t> partial;
};
ANNULUS_EXPORT BlockLayout from_topk(const LayoutSizes& sizes, std::int64_t k,
                                     std::span<const std::int32_t> indices,
                                     std::span<const std::uint8_t> partial = {});
// k is the longest row; shorter ones end in -1.
ANNULUS_EXPORT TopKArrays to_topk(const LayoutView& layout);

// FlexAttention's BlockMask of one batch entry: kv_num_blocks [heads, rows] and kv_indices [heads,
// rows, width] of the partial blocks, and full_kv_* of the full ones. The first kv_num_blocks
// entries of each list count, in any order. Without full_kv_* all blocks are partial.
struct FlexArrays {
  std::vector<std::int32_t> kv_num_blocks, kv_indices;
  std::vector<std::int32_t> full_kv_num_blocks, full_kv_indices;
};
ANNULUS_EXPORT BlockLayout from_flex(const LayoutSizes& sizes,
                                     std::span<const std::int32_t> kv_num_blocks,
                                     std::span<const std::int32_t> kv_indices,
                                     std::span<const std::int32_t> full_kv_num_blocks = {},
                                     std::span<const std::int32_t> full_kv_indices = {});
// width = columns; the blocks that count come first, then the others, both ascending.
ANNULUS_EXPORT FlexArrays to_flex(const LayoutView& layout);

// FlashInfer's block-sparse rows of one head: indptr [rows + 1], indices [kept] ascending in each
// row, mask [kept, R, C] with 1 for a visible pair, or empty where all are. Sq and Sk are multiples
// of R and C. A block with a hidden pair is partial.
struct MaskedBlocks {
  BlockLayout layout;
  std::vector<std::uint8_t> mask;
};
struct FlashInferArrays {
  std::vector<std::int32_t> indptr, indices;
  std::vector<std::uint8_t> mask;
};
ANNULUS_EXPORT MaskedBlocks from_flashinfer(const LayoutSizes& sizes,
                                            std::span<const std::int32_t> indptr,
                                            std::span<const std::int32_t> indices,
                                            std::span<const std::uint8_t> mask = {});
// Throws Error{kUnsupported} for a layout with partial blocks and no mask, because its hidden pairs
// would be lost.
ANNULUS_EXPORT FlashInferArrays to_flashinfer(const LayoutView& layout,
                                              std::span<const std::uint8_t> mask = {});
// The largest blocks R / 2^n x C / 2^m (then 1) that hold the mask exactly: all of them are full.
ANNULUS_EXPORT BlockLayout exact_layout(const LayoutView& layout,
                                        std::span<const std::uint8_t> mask);

// MInference's vertical and slash lists: for each head the columns that every query sees, and the
// offsets q - k of the diagonals that are seen, [heads, n] and [heads, m], padded with -1. They are
// token positions, so they make a pattern, not a layout; MInference means it & causal().
struct VerticalSlashArrays {
  std::int64_t heads = 1;
  std::vector<std::int32_t> verticals, slashes;
};
ANNULUS_EXPORT Pattern from_vertical_slash(std::int64_t heads,
                                           std::span<const std::int32_t> verticals,
                                           std::span<const std::int32_t> slashes);
// Lists ascend. Throws Error{kUnsupported} where the pattern is neither vertical_slash() nor
// heads() of such, or has a negative entry.
ANNULUS_EXPORT VerticalSlashArrays to_vertical_slash(const Pattern& pattern, std::int64_t heads);

// Files. kLayout is the library's own (save_layout). kNpy is a NumPy array of bool or uint8, as
// from_mask takes it, with 2 or 3 dimensions; kRaw has its bytes without the header. The others are
// safetensors whose tensors have the names above (I32, I64, U8; the words of a bitset are I32, and
// its partial words are called partial_bits), with metadata R, C, Sq, Sk and heads in decimal.
enum class LayoutFormat : int {
  kLayout,
  kNpy,
  kRaw,
  kCsr,
  kCoo,
  kBitset,
  kTopK,
  kFlex,
  kFlashInfer,
};
ANNULUS_EXPORT const char* to_string(LayoutFormat format);  // "layout", "npy", "raw", "csr", ...
// Throws Error{kInvalidArgument}, which lists the formats.
ANNULUS_EXPORT LayoutFormat layout_format(std::string_view name);

// Sizes that are 0 in `sizes` are taken from the file; where both state a size, they must agree. An
// npy file states its heads, rows and columns; Sq and Sk are then whole blocks unless `sizes` has
// them. A mask of FlashInfer becomes smaller blocks (exact_layout). Throws Error{kFile}, and
// Error{kInvalidFile} that names the first fault.
ANNULUS_EXPORT BlockLayout import_layout(const std::string& path, LayoutFormat format,
                                         const LayoutSizes& sizes = {0, 0, 0, 0, 0});
// Replaces the file whole or leaves it untouched.
ANNULUS_EXPORT void export_layout(const LayoutView& layout, const std::string& path,
                                  LayoutFormat format);

}  // namespace annulus::inline v0

#endif  // ANNULUS_LAYOUT_H_
