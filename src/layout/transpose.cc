#include <algorithm>
#include <vector>

#include "base/work.h"
#include "layout/builder.h"

namespace annulus::inline v0 {

// Blocks are appended to their columns in the order of rows, so each column is in ascending order
// without sorting.
BlockLayout transpose(const LayoutView& from) {
  const base::Work work({}, "transposing a layout");
  from.validate();
  BlockLayout to;
  to.block_rows = from.block_columns;
  to.block_columns = from.block_rows;
  to.seq_q = from.seq_k;
  to.seq_k = from.seq_q;
  to.heads = from.heads;
  to.head_map.assign(from.head_map.begin(), from.head_map.end());
  const std::int64_t rows = from.rows();
  const std::int64_t columns = from.columns();
  // Even a layout with few blocks may have many columns.
  const double lines = static_cast<double>(from.heads) * static_cast<double>(columns);
  base::expect(static_cast<std::int64_t>(std::min(3 * lines, 9e18)), "the offsets of the columns");
  constexpr std::int64_t kColumnsOfCharge = 4096;
  base::charge(static_cast<std::int64_t>(from.indices.size()));
  to.indptr.assign(static_cast<std::size_t>(from.heads * columns) + 1, 0);
  to.indices.resize(from.indices.size());
  to.partial.resize(from.partial.size());
  for (std::int64_t head = 0; head < from.heads; ++head) {
    std::int64_t* counts = to.indptr.data() + head * columns + 1;
    const std::int64_t begin = layout::begin_of(from, head, 0);
    const std::int64_t end = layout::begin_of(from, head, rows);
    for (std::int64_t at = begin; at < end; ++at)
      ++counts[from.indices[static_cast<std::size_t>(at)]];
    std::vector<std::int64_t> next(static_cast<std::size_t>(columns));
    std::int64_t sum = begin;
    for (std::int64_t column = 0; column < columns; ++column) {
      if (column % kColumnsOfCharge == 0) {
        base::charge(3 * std::min(kColumnsOfCharge, columns - column));
      }
      next[static_cast<std::size_t>(column)] = sum;
      sum += counts[column];
      counts[column] = sum;
    }
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t at = layout::begin_of(from, head, row);
           at < layout::begin_of(from, head, row + 1); ++at) {
        const auto source = static_cast<std::size_t>(at);
        const auto place =
            static_cast<std::size_t>(next[static_cast<std::size_t>(from.indices[source])]++);
        to.indices[place] = static_cast<std::int32_t>(row);
        if (!from.partial.empty()) to.partial[place] = from.partial[source];
      }
    }
  }
  return to;
}

}  // namespace annulus::inline v0
