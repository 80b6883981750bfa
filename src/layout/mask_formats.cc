// Masks and bitsets: one entry, or one bit, for each block.

#include "base/fail.h"
#include "base/math.h"
#include "base/work.h"
#include "layout/entries.h"

namespace annulus::layout {
namespace {

constexpr std::int64_t kWordBits = 32;

std::int64_t words_of(const LayoutView& layout) {
  return base::ceil_div(layout.columns(), kWordBits);
}

// Calls use(query head, row, line) for each row of blocks. Lines are numbered from 0.
template <typename Use>
void each_line(const LayoutView& layout, const Use& use) {
  std::int64_t line = 0;
  for (std::int64_t head = 0; head < layout.query_heads(); ++head) {
    for (std::int64_t row = 0; row < layout.rows(); ++row) {
      base::charge(1);
      use(head, row, line++);
    }
  }
}

}  // namespace
}  // namespace annulus::layout

namespace annulus::inline v0 {

using layout::Block;
using layout::Builder;

BlockLayout from_mask(const LayoutSizes& sizes, std::span<const std::uint8_t> mask) {
  const base::Work work({}, "reading a mask");
  const LayoutView like = layout::checked(sizes);
  const std::int64_t columns = like.columns();
  layout::check_count("the mask", mask.size(), {sizes.heads, like.rows(), columns});
  base::charge(static_cast<std::int64_t>(mask.size() / 4));
  Builder builder(sizes.block_rows, sizes.block_columns, sizes.seq_q, sizes.seq_k, sizes.heads);
  layout::each_line(like, [&](std::int64_t, std::int64_t, std::int64_t line) {
    for (std::int64_t column = 0; column < columns; ++column) {
      const auto at = static_cast<std::size_t>(line * columns + column);
      if (mask[at] == 0) continue;
      if (mask[at] > 2) {
        base::fail(ErrorCode::kInvalidArgument,
                   "mask[{}] is {}; it must be 0 (not kept), 1 (full) or 2 (partial)", at,
                   mask[at]);
      }
      builder.add(column, mask[at] == 1 ? Block::kFull : Block::kPartial);
    }
    builder.end_row();
  });
  return builder.finish({});
}

std::vector<std::uint8_t> to_mask(const LayoutView& from) {
  const base::Work work({}, "writing a mask");
  from.validate();
  const std::int64_t columns = from.columns();
  std::vector<std::uint8_t> mask(
      layout::array_size("the mask", {from.query_heads(), from.rows(), columns}));
  layout::each_line(from, [&](std::int64_t query, std::int64_t row, std::int64_t line) {
    const std::int64_t head = from.distinct_head(query);
    for (std::int64_t at = layout::begin_of(from, head, row);
         at < layout::begin_of(from, head, row + 1); ++at) {
      mask[static_cast<std::size_t>(line * columns + from.indices[static_cast<std::size_t>(at)])] =
          static_cast<std::uint8_t>(layout::block_at(from, at));
    }
  });
  return mask;
}

// Throws for bits beyond the columns, and for partial bits of blocks that are not kept. So
// to_bitset() returns the same words again.
BlockLayout from_bitset(const LayoutSizes& sizes, std::span<const std::uint32_t> kept,
                        std::span<const std::uint32_t> partial) {
  const base::Work work({}, "reading a bitset");
  const LayoutView like = layout::checked(sizes);
  const std::int64_t words = layout::words_of(like);
  layout::check_count("the bitset", kept.size(), {sizes.heads, like.rows(), words});
  if (!partial.empty())
    layout::check_count("the bitset of partial blocks", partial.size(),
                        {sizes.heads, like.rows(), words});
  Builder builder(sizes.block_rows, sizes.block_columns, sizes.seq_q, sizes.seq_k, sizes.heads);
  layout::each_line(like, [&](std::int64_t, std::int64_t, std::int64_t line) {
    for (std::int64_t word = 0; word < words; ++word) {
      const auto at = static_cast<std::size_t>(line * words + word);
      const std::uint32_t flags = partial.empty() ? 0 : partial[at];
      if ((flags & ~kept[at]) != 0) {
        base::fail(ErrorCode::kInvalidArgument,
                   "word {} marks blocks as partial that are not kept: {:#x} of {:#x}", at, flags,
                   kept[at]);
      }
      for (std::int64_t bit = 0; bit < layout::kWordBits; ++bit) {
        if ((kept[at] >> bit & 1) == 0) continue;
        const std::int64_t column = word * layout::kWordBits + bit;
        if (column >= like.columns()) {
          base::fail(ErrorCode::kInvalidArgument,
                     "word {} has bit {} set, for block column {}; there are {}", at, bit, column,
                     like.columns());
        }
        builder.add(column, (flags >> bit & 1) != 0 ? Block::kPartial : Block::kFull);
      }
    }
    builder.end_row();
  });
  return builder.finish({});
}

BitsetArrays to_bitset(const LayoutView& from) {
  const base::Work work({}, "writing a bitset");
  from.validate();
  const std::int64_t words = layout::words_of(from);
  BitsetArrays to;
  to.kept.resize(layout::array_size("the bitset", {from.query_heads(), from.rows(), words}));
  if (!from.partial.empty()) to.partial.resize(to.kept.size());
  layout::each_line(from, [&](std::int64_t query, std::int64_t row, std::int64_t line) {
    const std::int64_t head = from.distinct_head(query);
    for (std::int64_t at = layout::begin_of(from, head, row);
         at < layout::begin_of(from, head, row + 1); ++at) {
      const std::int64_t column = from.indices[static_cast<std::size_t>(at)];
      const auto word = static_cast<std::size_t>(line * words + column / layout::kWordBits);
      const std::uint32_t bit = 1u << (column % layout::kWordBits);
      to.kept[word] |= bit;
      if (layout::block_at(from, at) == Block::kPartial) to.partial[word] |= bit;
    }
  });
  return to;
}

}  // namespace annulus::inline v0
