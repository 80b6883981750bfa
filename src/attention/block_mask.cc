#include "attention/block_mask.h"

#include <algorithm>
#include <bit>

#include "pattern/node.h"

namespace annulus::attention {
namespace {

// The largest power of two that divides all of them; zeros divide by anything.
int common_shift(std::initializer_list<std::int64_t> values) {
  std::uint64_t bits = 0;
  for (const std::int64_t value : values) bits |= static_cast<std::uint64_t>(value);
  return std::countr_zero(bits);
}

// log2 of the granule along one axis, where tiles start at multiples of `tile` from the problem's
// index 0 and blocks at multiples of `block` from the layout's, which lies `offset` before it. The
// layout's end cuts as well where it lies inside the problem: nothing beyond it is visible.
int granule_shift(std::int64_t tile, std::int64_t block, std::int64_t offset, std::int64_t length,
                  std::int64_t layout_length) {
  const std::int64_t end = layout_length - offset;
  return common_shift({tile, block, offset, end > 0 && end < length ? end : 0});
}

}  // namespace

BlockMask::BlockMask(const BlockLayout& layout, const Problem& problem, std::int64_t tile_rows,
                     std::int64_t tile_columns)
    : layout_(&layout),
      tile_rows_(tile_rows),
      tile_columns_(tile_columns),
      row_offset_(problem.q_position() - (layout.seq_k - layout.seq_q)),
      column_offset_(problem.k_position()),
      row_shift_(
          granule_shift(tile_rows, layout.block_rows, row_offset_, problem.seq_q, layout.seq_q)),
      column_shift_(granule_shift(tile_columns, layout.block_columns, column_offset_, problem.seq_k,
                                  layout.seq_k)) {}

bool BlockMask::kept(std::int64_t head, std::int64_t layout_row, std::int64_t layout_column) const {
  if (layout_row < 0 || layout_row >= layout_->seq_q || layout_column < 0 ||
      layout_column >= layout_->seq_k) {
    return false;
  }
  const auto columns =
      layout_->row(pattern::layout_head(*layout_, head), layout_row / layout_->block_rows);
  return std::binary_search(columns.begin(), columns.end(),
                            static_cast<std::int32_t>(layout_column / layout_->block_columns));
}

std::int32_t BlockMask::append(std::int64_t head, std::int64_t row_tile, std::int64_t column_tile,
                               std::vector<std::uint32_t>* words) const {
  const std::size_t first_word = words->size();
  const std::int64_t rows = tile_rows_ >> row_shift_;
  const std::int64_t columns = tile_columns_ >> column_shift_;
  words->resize(first_word + static_cast<std::size_t>((rows * columns + 31) / 32), 0u);
  bool any = false;
  bool all = true;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t layout_row = row_offset_ + row_tile * tile_rows_ + (row << row_shift_);
    for (std::int64_t column = 0; column < columns; ++column) {
      const std::int64_t layout_column =
          column_offset_ + column_tile * tile_columns_ + (column << column_shift_);
      const bool bit = kept(head, layout_row, layout_column);
      any = any || bit;
      all = all && bit;
      const std::int64_t index = row * columns + column;
      if (bit) (*words)[first_word + static_cast<std::size_t>(index / 32)] |= 1u << (index % 32);
    }
  }
  if (any && !all) return static_cast<std::int32_t>(first_word);
  words->resize(first_word);
  return all ? kTileAllVisible : kTileNoneVisible;
}

}  // namespace annulus::attention
