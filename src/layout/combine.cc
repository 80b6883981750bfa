// Set operations. Two sorted rows are merged, and a table gives the class of each block of the
// result.

#include "base/work.h"
#include "layout/builder.h"

namespace annulus::layout {
namespace {

// The indices are the block's classes in the first and in the second layout.
using Table = Block[3][3];

constexpr Block kNone = Block::kNone, kFull = Block::kFull, kPartial = Block::kPartial;

// Two partial blocks may together be full, or may have no pair in common. A layout does not store
// their pairs, so a union stays partial and an intersection keeps the block.
constexpr Table kUnion = {{kNone, kFull, kPartial},  //
                          {kFull, kFull, kFull},
                          {kPartial, kFull, kPartial}};
constexpr Table kIntersection = {{kNone, kNone, kNone},  //
                                 {kNone, kFull, kPartial},
                                 {kNone, kPartial, kPartial}};
constexpr Table kDifference = {{kNone, kNone, kNone},  //
                               {kFull, kNone, kNone},
                               {kPartial, kNone, kNone}};

// Merges the rows of each pair of heads. A column that only one layout has is kNone in the other.
BlockLayout combine(const LayoutView& a, const LayoutView& b, const Table& table) {
  const base::Work work({}, "combining layouts");
  a.validate();
  b.validate();
  const HeadPairs heads = head_pairs(a, b);
  Builder builder(a.block_rows, a.block_columns, a.seq_q, a.seq_k,
                  static_cast<std::int64_t>(heads.pairs.size()));
  const auto add = [&](std::int32_t column, Block in_a, Block in_b) {
    const Block block = table[static_cast<int>(in_a)][static_cast<int>(in_b)];
    if (block != kNone) builder.add(column, block);
  };
  for (const HeadPairs::Pair& head : heads.pairs) {
    for (std::int64_t row = 0; row < a.rows(); ++row) {
      std::int64_t i = begin_of(a, head.a, row);
      std::int64_t j = begin_of(b, head.b, row);
      const std::int64_t a_end = begin_of(a, head.a, row + 1);
      const std::int64_t b_end = begin_of(b, head.b, row + 1);
      base::charge(a_end - i + b_end - j);
      const auto a_column = [&] { return a.indices[static_cast<std::size_t>(i)]; };
      const auto b_column = [&] { return b.indices[static_cast<std::size_t>(j)]; };
      while (i < a_end && j < b_end) {
        if (a_column() < b_column()) {
          add(a_column(), block_at(a, i), kNone);
          ++i;
        } else if (b_column() < a_column()) {
          add(b_column(), kNone, block_at(b, j));
          ++j;
        } else {
          add(a_column(), block_at(a, i), block_at(b, j));
          ++i;
          ++j;
        }
      }
      for (; i < a_end; ++i) add(a_column(), block_at(a, i), kNone);
      for (; j < b_end; ++j) add(b_column(), kNone, block_at(b, j));
      builder.end_row();
    }
  }
  return builder.finish(heads.map);
}

}  // namespace
}  // namespace annulus::layout

namespace annulus::inline v0 {

BlockLayout unite(const LayoutView& a, const LayoutView& b) {
  return layout::combine(a, b, layout::kUnion);
}
BlockLayout intersect(const LayoutView& a, const LayoutView& b) {
  return layout::combine(a, b, layout::kIntersection);
}
BlockLayout subtract(const LayoutView& a, const LayoutView& b) {
  return layout::combine(a, b, layout::kDifference);
}

}  // namespace annulus::inline v0
