#include "layout/builder.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/fail.h"
#include "base/work.h"

namespace annulus::layout {
namespace {

// The bound is the one of pattern/make_layout.cc, which states the reason.
constexpr std::size_t kMaxKept = std::size_t{1} << 31;

}  // namespace

Builder::Builder(std::int64_t block_rows, std::int64_t block_columns, std::int64_t seq_q,
                 std::int64_t seq_k, std::int64_t heads) {
  layout_.block_rows = block_rows;
  layout_.block_columns = block_columns;
  layout_.seq_q = seq_q;
  layout_.seq_k = seq_k;
  layout_.heads = heads;
  layout_.indptr.push_back(0);
}

void Builder::end_row() {
  if (layout_.indices.size() > kMaxKept) {
    base::fail(ErrorCode::kOutOfMemory,
               "more than 2^31 blocks of {} x {} are kept of Sq {} x Sk {}; use larger blocks",
               layout_.block_rows, layout_.block_columns, layout_.seq_q, layout_.seq_k);
  }
  const auto end = static_cast<std::int64_t>(layout_.indices.size());
  base::charge(1 + end - layout_.indptr.back());
  layout_.indptr.push_back(end);
}

BlockLayout Builder::finish(std::span<const std::int32_t> head_map) {
  if (!any_partial_) layout_.partial = {};
  layout_.head_map.assign(head_map.begin(), head_map.end());
  return std::move(layout_);
}

HeadPairs head_pairs(const LayoutView& a, const LayoutView& b) {
  if (a.block_rows != b.block_rows || a.block_columns != b.block_columns || a.seq_q != b.seq_q ||
      a.seq_k != b.seq_k) {
    base::fail(
        ErrorCode::kInvalidArgument,
        "layouts of {} x {} blocks over Sq {} x Sk {} and of {} x {} over {} x {} do not fit "
        "together; use reblock() or slice() first",
        a.block_rows, a.block_columns, a.seq_q, a.seq_k, b.block_rows, b.block_columns, b.seq_q,
        b.seq_k);
  }
  const std::int64_t of_a = a.query_heads();
  const std::int64_t of_b = b.query_heads();
  if (of_a != of_b && of_a != 1 && of_b != 1) {
    base::fail(ErrorCode::kInvalidArgument,
               "layouts for {} and for {} heads do not fit together; one of them must be for 1",
               of_a, of_b);
  }
  HeadPairs result;
  // Query heads with the same pair of distinct heads have the same result, which is stored once.
  std::map<std::pair<std::int64_t, std::int64_t>, std::int32_t> found;
  for (std::int64_t head = 0; head < std::max(of_a, of_b); ++head) {
    const std::int64_t in_a = a.distinct_head(of_a == 1 ? 0 : head);
    const std::int64_t in_b = b.distinct_head(of_b == 1 ? 0 : head);
    const auto [place, added] =
        found.try_emplace({in_a, in_b}, static_cast<std::int32_t>(result.pairs.size()));
    if (added) result.pairs.push_back({in_a, in_b});
    result.map.push_back(place->second);
  }
  if (result.map.size() == result.pairs.size()) result.map.clear();
  return result;
}

std::int64_t distance_to_diagonal(const LayoutView& layout, std::int64_t row, std::int64_t column) {
  const std::int64_t first_row = row * layout.block_rows;
  const std::int64_t last_row = std::min(first_row + layout.block_rows, layout.seq_q) - 1;
  const std::int64_t shift = layout.seq_k - layout.seq_q;  // row + shift is the row's position
  const std::int64_t first_key = column * layout.block_columns;
  const std::int64_t last_key = std::min(first_key + layout.block_columns, layout.seq_k) - 1;
  return std::max<std::int64_t>({0, first_key - (last_row + shift), first_row + shift - last_key});
}

}  // namespace annulus::layout
