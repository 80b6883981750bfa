#include <algorithm>
#include <vector>

#include "base/work.h"
#include "layout/builder.h"
#include "pattern/classify.h"

namespace annulus::layout {
namespace {

// The numbers of blocks in the rows, or in the columns.
struct Load {
  std::int64_t shortest = 0;
  std::int64_t longest = 0;
  std::int64_t empty = 0;
  std::int64_t lines = 0;
  double sum = 0;

  void add(std::int64_t blocks) {
    shortest = lines == 0 ? blocks : std::min(shortest, blocks);
    longest = std::max(longest, blocks);
    empty += blocks == 0;
    sum += static_cast<double>(blocks);
    ++lines;
  }
  double imbalance() const {
    return sum > 0 ? static_cast<double>(longest) * static_cast<double>(lines) / sum : 0;
  }
};

}  // namespace
}  // namespace annulus::layout

namespace annulus::inline v0 {

// Blocks, rows and columns are counted over distinct heads. Only the density is over query heads.
LayoutStatistics statistics(const LayoutView& view) {
  const base::Work work({}, "counting the blocks of a layout");
  view.validate();
  LayoutStatistics result;
  result.rows = view.rows();
  result.columns = view.columns();
  result.heads = view.query_heads();
  result.distinct_heads = view.heads;
  result.kept = static_cast<std::int64_t>(view.indices.size());
  result.partial = std::count(view.partial.begin(), view.partial.end(), std::uint8_t{1});
  result.block_density = block_density(view);
  result.bytes = static_cast<std::int64_t>(view.indptr.size_bytes() + view.indices.size_bytes() +
                                           view.partial.size_bytes() + view.head_map.size_bytes());
  layout::Load rows, columns;
  double distance = 0;
  std::vector<std::int64_t> column_blocks;
  for (std::int64_t head = 0; head < view.heads; ++head) {
    base::expect(2 * result.columns, "the columns of a head");
    base::charge(2 * result.columns);
    column_blocks.assign(static_cast<std::size_t>(result.columns), 0);
    for (std::int64_t row = 0; row < result.rows; ++row) {
      const auto kept = view.row(head, row);
      base::charge(1 + static_cast<std::int64_t>(kept.size()));
      rows.add(static_cast<std::int64_t>(kept.size()));
      for (const std::int32_t column : kept) {
        ++column_blocks[static_cast<std::size_t>(column)];
        distance += static_cast<double>(layout::distance_to_diagonal(view, row, column));
      }
    }
    for (const std::int64_t blocks : column_blocks) columns.add(blocks);
  }
  result.shortest_row = rows.shortest;
  result.longest_row = rows.longest;
  result.empty_rows = rows.empty;
  result.row_imbalance = rows.imbalance();
  result.shortest_column = columns.shortest;
  result.longest_column = columns.longest;
  result.empty_columns = columns.empty;
  result.column_imbalance = columns.imbalance();
  result.mean_distance = result.kept > 0 ? distance / static_cast<double>(result.kept) : 0;
  return result;
}

PatternStatistics statistics(const Pattern& pattern, const LayoutSizes& sizes,
                             const LayoutOptions& options) {
  const base::Work work(options.work, "counting blocks and pairs");
  PatternStatistics result;
  result.layout = statistics(make_layout(pattern, sizes, options));
  result.pairs = pattern::density(pattern, pattern::Extent::whole(sizes.seq_q, sizes.seq_k),
                                  sizes.heads, {sizes.seq_k, options.layer});
  if (result.pairs.value > 0) {
    result.overhead = result.layout.block_density.value / result.pairs.value;
  }
  return result;
}

}  // namespace annulus::inline v0
