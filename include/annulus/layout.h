#ifndef ANNULUS_LAYOUT_H_
#define ANNULUS_LAYOUT_H_

// Block layouts: making them from patterns, set operations, slices, other block sizes and
// densities, statistics, pictures, a cache, and the formats and files of other libraries.
//
//   BlockLayout both = intersect(a, b);
//   BlockLayout rank = slice(layout, rows_of_rank, keys_of_hop);
//   LayoutStatistics counts = statistics(rank);
//
// A layout is a set of whole blocks: blocks(unite(a, b)) sees what blocks(a) | blocks(b) sees, and
// so on. Partial flags are conservative: a block of a result is full only if all of its pairs are
// known to be visible. `partial` of a result is empty if no block is partial. Operands may have 1
// head or H heads; a single head stands for all.
//
// Any thread may call these functions. They read their operands only during the call, validate
// them, and throw Error{kInvalidArgument}, which names the first bad entry or the sizes that do not
// fit. Time and memory grow with the kept blocks, the rows and the columns of operands and results,
// which may be much larger than the operands. So functions that make, compare, convert or count a
// layout have the default WorkLimit, or the limit of a WorkScope (annulus/types.h), and throw
// Error{kLimit} and Error{kCancelled}. More than 2^31 kept blocks are Error{kOutOfMemory}.

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

// A view of the arrays of a layout, whose owner must keep them as long as the view.
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
  LayoutView(const BlockLayout& layout);  // implicit: a layout can be passed as a view

  // These functions mean the same as in BlockLayout.
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
  // The partial flags of one row; empty if no block of the layout is partial.
  std::span<const std::uint8_t> partial_row(std::int64_t head, std::int64_t row) const;
  void validate() const;
  void validate_sizes() const;  // only R, C, Sq, Sk and heads
};

// The sizes of a layout's problem and blocks. rows = ceil(Sq / R), columns = ceil(Sk / C).
struct LayoutSizes {
  std::int64_t block_rows = 0;     // R
  std::int64_t block_columns = 0;  // C
  std::int64_t seq_q = 0;          // Sq
  std::int64_t seq_k = 0;          // Sk
  std::int64_t heads = 1;          // query heads
};
ANNULUS_EXPORT LayoutSizes sizes_of(const LayoutView& layout);

struct LayoutOptions {
  std::int64_t layer = 0;  // layer of the model; random() depends on it
  int threads = 0;         // 0: up to one per core, if there is enough work; 1: only the caller's
  WorkLimit work = {};     // limit of all threads together
};

// The blocks of a pattern: those with a visible pair, partial if they have a hidden pair too. Equal
// heads are stored once. The result does not depend on the number of threads. Also throws
// Error{kInvalidArgument} if the pattern has layouts for another number of heads or for lengths
// that do not cover the sizes (OutsideLayout).
ANNULUS_EXPORT BlockLayout make_layout(const Pattern& pattern, const LayoutSizes& sizes,
                                       const LayoutOptions& options = {});

ANNULUS_EXPORT Density block_density(const LayoutView& layout);  // see annulus/pattern.h

// Maps a layout's file into memory and checks it once. The arrays are the file's pages, not copies.
// Copies of the object share the mapping. Another process may replace the file, as save_layout
// does, but must not change or shorten it in place: reading a missing part ends the process.
class ANNULUS_EXPORT MappedLayout {
 public:
  // Throws Error{kFile} or Error{kInvalidFile}, which names the first fault.
  explicit MappedLayout(const std::string& path);
  // Valid as long as this object or a copy of it.
  const LayoutView& view() const;

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};
// Writes the same file as save_layout(BlockLayout, path), with the same errors.
ANNULUS_EXPORT void save_layout(const LayoutView& layout, const std::string& path);

// Copies the arrays into a layout that owns them.
ANNULUS_EXPORT BlockLayout copy(const LayoutView& layout);
// share_heads() stores query heads with equal blocks and flags once. part_heads() stores each query
// head separately, without a head map. Both keep the blocks of each query head.
ANNULUS_EXPORT BlockLayout share_heads(const LayoutView& layout);
ANNULUS_EXPORT BlockLayout part_heads(const LayoutView& layout);
// The layout of one query head.
ANNULUS_EXPORT BlockLayout head_of(const LayoutView& layout, std::int64_t head);

// ---- Layouts from layouts

// Set operations. Operands agree in R, C, Sq and Sk.
ANNULUS_EXPORT BlockLayout unite(const LayoutView& a, const LayoutView& b);
ANNULUS_EXPORT BlockLayout intersect(const LayoutView& a, const LayoutView& b);
ANNULUS_EXPORT BlockLayout subtract(const LayoutView& a, const LayoutView& b);  // in a, not in b

// Exchanges row blocks and column blocks: Sq and Sk, R and C.
ANNULUS_EXPORT BlockLayout transpose(const LayoutView& layout);

// The layout of a shard: its rows are the rows in `rows`, one segment after another, and its
// columns the columns in `columns`. Segments count rows of the layout from 0 (a query's position is
// its row + Sk - Sq); they may have any order and alignment. A block of the result is kept if it
// contains a pair of a kept block.
ANNULUS_EXPORT BlockLayout slice(const LayoutView& layout, std::span<const Segment> rows,
                                 std::span<const Segment> columns);

// The layout of R' x C' blocks that contain a pair of a kept block.
ANNULUS_EXPORT BlockLayout reblock(const LayoutView& layout, std::int64_t block_rows,
                                   std::int64_t block_columns);

// Drops or adds blocks until each distinct head has round(d x rows x columns) blocks. Dropped
// blocks are distributed over the rows in proportion to their kept blocks, added blocks in
// proportion to their missing blocks. A row first drops the blocks farthest from the diagonal and
// first adds the nearest; of equally far blocks the lower index is kept or added. Blocks on the
// diagonal and in column 0 are never dropped. With `within` only its blocks are added. Throws
// Error{kInvalidArgument} for d outside [0, 1], and, with the possible number, if d is impossible.
ANNULUS_EXPORT BlockLayout with_density(const LayoutView& layout, Density d);
ANNULUS_EXPORT BlockLayout with_density(const LayoutView& layout, Density d,
                                        const LayoutView& within);

// The differences of two layouts.
struct LayoutDifference {
  std::int64_t only_first = 0;  // blocks kept only by the first, over all query heads
  std::int64_t only_second = 0;
  std::int64_t flags = 0;  // blocks kept by both but partial in one
  bool same_sizes = true;  // false: the counts are 0, and the text names the different sizes
  // One line for each row of blocks with differences, such as "head 0 row 3: -4..7 +9 ~11": blocks
  // that only the first keeps (-), blocks that only the second keeps (+), and blocks with different
  // flags (~). The last line has the counts. Empty: no difference.
  std::string text;
};
// The text has at most `max_lines` lines for rows, and one more with the number of omitted lines.
// Also throws Error{kInvalidArgument} if `max_lines` is negative.
ANNULUS_EXPORT LayoutDifference difference(const LayoutView& first, const LayoutView& second,
                                           std::int64_t max_lines = 100);

// ---- Statistics and pictures

struct LayoutStatistics {
  std::int64_t rows = 0;     // ceil(Sq / R)
  std::int64_t columns = 0;  // ceil(Sk / C)
  std::int64_t heads = 1;    // H; 1: any number
  std::int64_t distinct_heads = 1;
  std::int64_t kept = 0;     // kept blocks of the distinct heads
  std::int64_t partial = 0;  // partial blocks among them
  Density block_density;     // the density of all query heads
  // Numbers of blocks in a row or column of a distinct head; means include empty ones.
  std::int64_t shortest_row = 0, longest_row = 0, empty_rows = 0;
  std::int64_t shortest_column = 0, longest_column = 0, empty_columns = 0;
  double row_imbalance = 0;     // longest row over mean row: 1 is even; 0 if nothing is kept
  double column_imbalance = 0;  // longest column over mean column
  double mean_distance = 0;     // mean tokens between a kept block and the diagonal, 0 on it
  std::int64_t bytes = 0;       // bytes of the arrays
};
ANNULUS_EXPORT LayoutStatistics statistics(const LayoutView& layout);

// A pattern's density counted in whole blocks and counted pair by pair.
struct PatternStatistics {
  Density pairs;            // visible pairs over all pairs, exact
  LayoutStatistics layout;  // statistics of its R x C blocks
  double overhead = 0;      // block density over density of pairs; 0 if nothing is visible
};
ANNULUS_EXPORT PatternStatistics statistics(const Pattern& pattern, const LayoutSizes& sizes,
                                            const LayoutOptions& options = {});

// How far information travels through layers: entry n - 1 is the share of (row block, column block)
// pairs for which n layers carry information from the column to the row. Each layer sees the blocks
// that any head keeps, and each row keeps its own information (the residual connection), so the
// shares never fall. It needs rows x columns / 4 bytes, and for each layer a time in proportion to
// kept blocks x columns / 64. Also throws Error{kUnsupported} above 2^34 pairs of blocks, and
// Error{kInvalidArgument} for layers outside [1, 1024].
ANNULUS_EXPORT std::vector<double> reachability(const LayoutView& layout, int layers);

struct PictureOptions {
  std::int64_t head = 0;       // query head
  std::int64_t max_cells = 0;  // cells of a row and of a column; 0: 64 for text, 256 for SVG
};
// A title line and a grid: '#' full, '+' partial, '.' not kept. If there are more blocks than
// cells, a cell stands for several blocks: '#' all full, '+' all kept, '-' some, '.' none.
ANNULUS_EXPORT std::string text_picture(const LayoutView& layout,
                                        const PictureOptions& options = {});
// The picture as an SVG document. A cell of several blocks is darker if more of them are kept.
ANNULUS_EXPORT std::string svg_picture(const LayoutView& layout,
                                       const PictureOptions& options = {});

// ---- A cache of layouts
//
// Lengths matter only through the size of the block grid: all lengths with the same blocks share
// one layout. So a decode that grows by a token finds its layout again until a new block begins.
//
//   LayoutCache cache;
//   const LayoutQuery local(causal() & window(4095, 0), 128, 128);       // once
//   std::shared_ptr<const GridLayout> found = cache.get(local, Sq, Sk);  // at each step
//
// The cache has limits of bytes and entries. A layout that it returned lives as long as a pointer
// to it, even after the cache has dropped it. Any thread may call any function at any time: of
// several threads that request a missing layout, one makes it and the others wait.

// The blocks of a pattern on a grid of positions: block (i, j) has the queries at positions
// q_position + [i R, (i + 1) R) and the keys at k_position + [j C, (j + 1) C). Kernels mask the
// positions outside the requested lengths. For all lengths that share the layout, every block with
// a visible pair is kept, and a full block has no hidden pair.
struct GridLayout {
  BlockLayout layout;           // its Sq and Sk are whole blocks
  std::int64_t q_position = 0;  // a multiple of R, at or before Sk - Sq
  std::int64_t k_position = 0;  // 0
  // The block row of the query at this position, for a problem that begins there.
  std::int64_t row_of(std::int64_t position) const {
    return (position - q_position) / layout.block_rows;
  }
};

// Everything that decides a layout except the lengths. A query is immutable, and copies share it.
class ANNULUS_EXPORT LayoutQuery {
 public:
  // Throws Error{kInvalidArgument} for sizes out of range, and if the pattern has layouts for
  // another number of heads.
  LayoutQuery(const Pattern& pattern, std::int64_t block_rows, std::int64_t block_columns,
              std::int64_t heads = 1, std::int64_t layer = 0);

  // The cache key for these lengths. Two keys are equal if and only if the pattern (with its
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
  std::int64_t bytes = std::int64_t{256} << 20;  // bytes of all kept layouts together
  std::int64_t entries = 512;
};

struct LayoutCacheCounters {
  std::int64_t hits = 0;       // the layout was in the cache
  std::int64_t waits = 0;      // another thread was making the layout
  std::int64_t misses = 0;     // the call made the layout
  std::int64_t failures = 0;   // misses whose making threw
  std::int64_t evictions = 0;  // layouts dropped for newer ones
  std::int64_t too_large = 0;  // misses larger than the limit, which were returned but not kept
  std::int64_t bytes = 0;      // bytes in the cache now
  std::int64_t entries = 0;
};

class ANNULUS_EXPORT LayoutCache {
 public:
  explicit LayoutCache(const LayoutCacheLimits& limits = {});
  ~LayoutCache();
  LayoutCache(const LayoutCache&) = delete;
  LayoutCache& operator=(const LayoutCache&) = delete;

  // Never returns null. Throws Error{kInvalidArgument} if a layout of the pattern does not cover
  // the lengths (OutsideLayout). If making the layout throws, every thread that waited for it gets
  // the error, and the next call tries again. But if the maker was stopped by its own limit or
  // flag, a waiting thread makes the layout within its own limit.
  std::shared_ptr<const GridLayout> get(const LayoutQuery& query, std::int64_t seq_q,
                                        std::int64_t seq_k, const WorkLimit& limit = {});

  LayoutCacheCounters counters() const;
  void clear();  // drops all entries and keeps the counters

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Makes the layout of make_layout() above with kernels on a device, bit for bit. A block is
// classified by its ranges of positions for causal, windows, sinks, first globals, documents and
// leaves of blocks, and pair by pair for other leaves. So it is worth its time for patterns with
// other leaves, and on idle GPUs. It compiles a kernel for each structure of an expression, uses
// the default stream, allocates on the device and waits. Also throws Error{kUnsupported} for a sum,
// for blocks(), for lengths above 2^30 and for more than 2^28 random choices, and
// Error{kOutOfMemory}, Error{kCompile} and Error{kDevice}.
ANNULUS_EXPORT BlockLayout make_layout(const Device& device, const Pattern& pattern,
                                       const LayoutSizes& sizes, const LayoutOptions& options = {});

// ---- Formats of other libraries
//
// Each format has a `to` and a `from` function, which lose nothing: `from` of the arrays of `to`
// has the same blocks and flags for each query head, and `to` of the layout of `from` has the same
// arrays, except for the order of blocks in a list. Arrays are row-major with the query head first.
// They have no head maps; share_heads() finds equal heads again. Formats without partial blocks
// have one more array for the flags, which may be omitted: then all blocks are full. `to` functions
// also throw Error{kUnsupported} if the format cannot represent the layout.

// A mask of blocks, [heads, rows, columns]: 0 not kept, 1 full, 2 partial. It may be a bool mask.
ANNULUS_EXPORT BlockLayout from_mask(const LayoutSizes& sizes, std::span<const std::uint8_t> mask);
ANNULUS_EXPORT std::vector<std::uint8_t> to_mask(const LayoutView& layout);

// A bit for each block, [heads, rows, ceil(columns / 32)] words, lowest bit first; bits beyond the
// columns are 0. `partial` has the same form and only bits of `kept`. Empty: no block is partial.
struct BitsetArrays {
  std::vector<std::uint32_t> kept, partial;
};
ANNULUS_EXPORT BlockLayout from_bitset(const LayoutSizes& sizes,
                                       std::span<const std::uint32_t> kept,
                                       std::span<const std::uint32_t> partial = {});
ANNULUS_EXPORT BitsetArrays to_bitset(const LayoutView& layout);

// Compressed sparse rows of blocks (CSR of blocks, or BSR): indptr [heads rows + 1], indices [kept]
// ascending in each row, partial [kept] 0 or 1, or empty.
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

// Coordinates [kept] in any order, without repeated blocks. `heads` may be empty for one head.
struct CooArrays {
  std::vector<std::int32_t> heads, rows, columns;
  std::vector<std::uint8_t> partial;
};
ANNULUS_EXPORT BlockLayout from_coo(const LayoutSizes& sizes, std::span<const std::int32_t> heads,
                                    std::span<const std::int32_t> rows,
                                    std::span<const std::int32_t> columns,
                                    std::span<const std::uint8_t> partial = {});
ANNULUS_EXPORT CooArrays to_coo(const LayoutView& layout);

// Lists of blocks, [heads, rows, k], in any order, without repeated blocks, padded with -1. partial
// is [heads, rows, k] or empty.
struct TopKArrays {
  std::int64_t k = 0;
  std::vector<std::int32_t> indices;
  std::vector<std::uint8_t> partial;
};
ANNULUS_EXPORT BlockLayout from_topk(const LayoutSizes& sizes, std::int64_t k,
                                     std::span<const std::int32_t> indices,
                                     std::span<const std::uint8_t> partial = {});
// k is the longest row; shorter rows are padded with -1.
ANNULUS_EXPORT TopKArrays to_topk(const LayoutView& layout);

// FlexAttention's BlockMask of one batch entry: kv_num_blocks [heads, rows] and kv_indices [heads,
// rows, width] of the partial blocks, and full_kv_* of the full blocks. Only the first
// kv_num_blocks entries of each list count, in any order. Without full_kv_* all blocks are partial.
struct FlexArrays {
  std::vector<std::int32_t> kv_num_blocks, kv_indices;
  std::vector<std::int32_t> full_kv_num_blocks, full_kv_indices;
};
ANNULUS_EXPORT BlockLayout from_flex(const LayoutSizes& sizes,
                                     std::span<const std::int32_t> kv_num_blocks,
                                     std::span<const std::int32_t> kv_indices,
                                     std::span<const std::int32_t> full_kv_num_blocks = {},
                                     std::span<const std::int32_t> full_kv_indices = {});
// width = columns; each list has its blocks and then the other columns, both ascending.
ANNULUS_EXPORT FlexArrays to_flex(const LayoutView& layout);

// FlashInfer's block-sparse rows of one head: indptr [rows + 1], indices [kept] ascending in each
// row, mask [kept, R, C] with 1 for a visible pair, or empty if all pairs are visible. Sq and Sk
// are multiples of R and C. A block with a hidden pair is partial.
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
// Throws Error{kUnsupported} for partial blocks without a mask: hidden pairs would be lost.
ANNULUS_EXPORT FlashInferArrays to_flashinfer(const LayoutView& layout,
                                              std::span<const std::uint8_t> mask = {});
// The largest blocks R / 2^n x C / 2^m that represent the mask exactly by full blocks.
ANNULUS_EXPORT BlockLayout exact_layout(const LayoutView& layout,
                                        std::span<const std::uint8_t> mask);

// MInference's vertical and slash lists: for each head the columns that every query sees, and the
// offsets q - k of the visible diagonals, [heads, n] and [heads, m], padded with -1. They are token
// positions, so they make a pattern, not a layout. MInference uses it & causal().
struct VerticalSlashArrays {
  std::int64_t heads = 1;
  std::vector<std::int32_t> verticals, slashes;
};
ANNULUS_EXPORT Pattern from_vertical_slash(std::int64_t heads,
                                           std::span<const std::int32_t> verticals,
                                           std::span<const std::int32_t> slashes);
// Lists ascend. Throws Error{kUnsupported} if the pattern is neither vertical_slash() nor heads()
// of such patterns, or has a negative entry.
ANNULUS_EXPORT VerticalSlashArrays to_vertical_slash(const Pattern& pattern, std::int64_t heads);

// ---- Files

// kLayout is the library's own file (save_layout). kNpy is a NumPy array of bool or uint8 with 2 or
// 3 dimensions, as for from_mask; kRaw has its bytes without the header. The others are
// safetensors, whose tensors have the names of the arrays above (I32, I64, U8; the words of a
// bitset are I32, and its partial words are named partial_bits), with metadata R, C, Sq, Sk, heads.
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

// Reads a file. Sizes of 0 are taken from the file; other sizes must agree with the file. An npy
// file has heads, rows and columns; without sizes, Sq and Sk are then whole blocks. A mask of
// FlashInfer becomes smaller blocks (exact_layout). Throws Error{kFile}, and Error{kInvalidFile},
// which names the first fault.
ANNULUS_EXPORT BlockLayout import_layout(const std::string& path, LayoutFormat format,
                                         const LayoutSizes& sizes = {0, 0, 0, 0, 0});
// Replaces the whole file or leaves it unchanged.
ANNULUS_EXPORT void export_layout(const LayoutView& layout, const std::string& path,
                                  LayoutFormat format);

}  // namespace annulus::inline v0

#endif  // ANNULUS_LAYOUT_H_
