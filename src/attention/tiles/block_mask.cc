#include "attention/tiles/block_mask.h"

#include <algorithm>
#include <bit>

#include "base/work.h"
#include "pattern/node.h"

namespace annulus::attention {
namespace {

// log2 of the largest power of two that divides all values; 0 is divisible by anything.
int common_shift(std::initializer_list<std::int64_t> values) {
  std::uint64_t bits = 0;
  for (const std::int64_t value : values) bits |= static_cast<std::uint64_t>(value);
  return std::countr_zero(bits);
}

}  // namespace

// Granules begin at multiples of their size, counted from the tensor's row 0. No edge of a tile,
// segment or block may cut a granule, nor may the layout's end, beyond which nothing is visible.
BlockMask::Axis::Axis(const std::vector<Segment>& segments, std::int64_t position_of_layout,
                      std::int64_t length, std::int64_t block_size, std::int64_t tile_size)
    : layout_length(length), block(block_size), tile(tile_size) {
  std::int64_t begin = 0;
  shift = common_shift({tile, block});
  for (const Segment& segment : segments) {
    if (segment.length == 0) continue;
    const std::int64_t at = segment.start - position_of_layout;
    parts.push_back({begin, begin + segment.length, at});
    // The end of the layout, as a row of the tensor.
    const std::int64_t end = begin + layout_length - at;
    const bool cut = end > begin && end < begin + segment.length;
    shift = std::min(shift, common_shift({tile, begin, begin - at, cut ? end : 0}));
    begin += segment.length;
  }
}

std::int64_t BlockMask::Axis::block_of(std::int64_t index) const {
  for (const Part& part : parts) {
    if (index >= part.end) continue;
    const std::int64_t row = part.layout + index - part.begin;
    return row < 0 || row >= layout_length ? -1 : row / block;
  }
  return -1;
}

BlockMask::BlockMask(const BlockLayout& layout, const pattern::Placement& placement,
                     std::int64_t tile_rows, std::int64_t tile_columns)
    : layout_(&layout),
      rows_(placement.q, layout.seq_k - layout.seq_q, layout.seq_q, layout.block_rows, tile_rows),
      columns_(placement.k, 0, layout.seq_k, layout.block_columns, tile_columns) {}

bool BlockMask::kept(std::int64_t head, std::int64_t block_row, std::int64_t block_column) const {
  if (block_row < 0 || block_column < 0) return false;
  const auto columns = layout_->row(layout_->distinct_head(head), block_row);
  return std::binary_search(columns.begin(), columns.end(),
                            static_cast<std::int32_t>(block_column));
}

std::int32_t BlockMask::append(std::int64_t head, std::int64_t row_tile, std::int64_t column_tile,
                               std::vector<std::uint32_t>* words) const {
  const std::size_t first_word = words->size();
  const std::int64_t rows = rows_.tile >> rows_.shift;
  const std::int64_t columns = columns_.tile >> columns_.shift;
  base::charge(1 + rows * columns);
  words->resize(first_word + static_cast<std::size_t>((rows * columns + 31) / 32), 0u);
  bool any = false;
  bool all = true;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t block_row = rows_.block_of(row_tile * rows_.tile + (row << rows_.shift));
    for (std::int64_t column = 0; column < columns; ++column) {
      const bool bit =
          kept(head, block_row,
               columns_.block_of(column_tile * columns_.tile + (column << columns_.shift)));
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
