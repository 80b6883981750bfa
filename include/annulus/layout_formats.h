#ifndef ANNULUS_LAYOUT_FORMATS_H_
#define ANNULUS_LAYOUT_FORMATS_H_

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
// layout: they have the default WorkLimit, or that of a WorkScope (annulus/work_limit.h), and throw
// Error{kLimit, kCancelled}.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "annulus/layout.h"

namespace annulus::inline v0 {

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

#endif  // ANNULUS_LAYOUT_FORMATS_H_
