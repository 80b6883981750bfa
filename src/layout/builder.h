#ifndef ANNULUS_LAYOUT_BUILDER_H_
#define ANNULUS_LAYOUT_BUILDER_H_

// Writes a layout, one block after another.

#include <cstdint>
#include <span>
#include <vector>

#include "annulus/layout.h"

namespace annulus::layout {

// The class of a block in a layout.
enum class Block : std::uint8_t { kNone = 0, kFull = 1, kPartial = 2 };

class Builder {
 public:
  Builder(std::int64_t block_rows, std::int64_t block_columns, std::int64_t seq_q,
          std::int64_t seq_k, std::int64_t heads);
  // The columns of a row must come in ascending order.
  void add(std::int64_t column, Block block) {
    layout_.indices.push_back(static_cast<std::int32_t>(column));
    layout_.partial.push_back(block == Block::kPartial ? 1 : 0);
    any_partial_ = any_partial_ || block == Block::kPartial;
  }
  // Charges the steps of the row. Throws Error{kOutOfMemory} if too many blocks are kept, and the
  // errors of base::charge().
  void end_row();

  // Requires: every row of every head has ended.
  BlockLayout finish(std::span<const std::int32_t> head_map);

 private:
  BlockLayout layout_;
  bool any_partial_ = false;
};

// The class of the block at indices[at] of a layout.
inline Block block_at(const LayoutView& layout, std::int64_t at) {
  return !layout.partial.empty() && layout.partial[static_cast<std::size_t>(at)] != 0
             ? Block::kPartial
             : Block::kFull;
}

// The index in `indices` at which row `row` of a head begins. With row + 1 it is the index at which
// the row ends.
inline std::int64_t begin_of(const LayoutView& layout, std::int64_t head, std::int64_t row) {
  return layout.indptr[static_cast<std::size_t>(head * layout.rows() + row)];
}

// The heads of a result of two layouts, one of which may be for any number of heads: the distinct
// pairs of heads, and the pair of each query head.
struct HeadPairs {
  struct Pair {
    std::int64_t a = 0;
    std::int64_t b = 0;
  };
  std::vector<Pair> pairs;
  // BlockLayout::head_map of the result: empty if each query head has its own pair.
  std::vector<std::int32_t> map;
};
// Throws Error{kInvalidArgument} if the sizes or heads do not fit together.
HeadPairs head_pairs(const LayoutView& a, const LayoutView& b);

// The number of tokens between column block `column` and the positions of row block `row`; 0 if
// they have a position in common.
std::int64_t distance_to_diagonal(const LayoutView& layout, std::int64_t row, std::int64_t column);

}  // namespace annulus::layout

#endif  // ANNULUS_LAYOUT_BUILDER_H_
