// Lists of kept blocks: compressed rows, coordinates, top-k.

#include <algorithm>
#include <numeric>

#include "base/fail.h"
#include "base/work.h"
#include "layout/entries.h"

namespace annulus::layout {
namespace {

template <typename Offset>
BlockLayout from_rows(const LayoutSizes& sizes, std::span<const Offset> indptr,
                      std::span<const std::int32_t> indices,
                      std::span<const std::uint8_t> partial) {
  BlockLayout result{.block_rows = sizes.block_rows,
                     .block_columns = sizes.block_columns,
                     .seq_q = sizes.seq_q,
                     .seq_k = sizes.seq_k,
                     .heads = sizes.heads,
                     .indptr = {indptr.begin(), indptr.end()},
                     .indices = {indices.begin(), indices.end()},
                     .partial = {partial.begin(), partial.end()}};
  result.validate();
  if (std::count(partial.begin(), partial.end(), 1) == 0) result.partial.clear();
  return result;
}

void check_flag(const char* name, std::span<const std::uint8_t> partial, std::size_t at) {
  if (!partial.empty() && partial[at] > 1) {
    base::fail(ErrorCode::kInvalidArgument, "{}[{}] is {}; it must be 0 or 1", name, at,
               partial[at]);
  }
}

Block block_of(std::span<const std::uint8_t> partial, std::size_t at) {
  return !partial.empty() && partial[at] != 0 ? Block::kPartial : Block::kFull;
}

}  // namespace
}  // namespace annulus::layout

namespace annulus::inline v0 {

using layout::Builder;

BlockLayout from_csr(const LayoutSizes& sizes, std::span<const std::int64_t> indptr,
                     std::span<const std::int32_t> indices, std::span<const std::uint8_t> partial) {
  return layout::from_rows(sizes, indptr, indices, partial);
}
BlockLayout from_csr(const LayoutSizes& sizes, std::span<const std::int32_t> indptr,
                     std::span<const std::int32_t> indices, std::span<const std::uint8_t> partial) {
  return layout::from_rows(sizes, indptr, indices, partial);
}

CsrArrays to_csr(const LayoutView& from) {
  if (from.head_map.empty()) {
    from.validate();
    return {{from.indptr.begin(), from.indptr.end()},
            {from.indices.begin(), from.indices.end()},
            {from.partial.begin(), from.partial.end()}};
  }
  BlockLayout parted = part_heads(from);
  return {std::move(parted.indptr), std::move(parted.indices), std::move(parted.partial)};
}

BlockLayout from_coo(const LayoutSizes& sizes, std::span<const std::int32_t> heads,
                     std::span<const std::int32_t> rows, std::span<const std::int32_t> columns,
                     std::span<const std::uint8_t> partial) {
  const base::Work work({}, "reading coordinates");
  const LayoutView like = layout::checked(sizes);
  const auto count = static_cast<std::int64_t>(rows.size());
  layout::check_count("columns", columns.size(), {count});
  if (!heads.empty() || sizes.heads != 1) layout::check_count("heads", heads.size(), {count});
  if (!partial.empty()) layout::check_count("partial", partial.size(), {count});
  const std::size_t lines = layout::array_size("indptr", {sizes.heads, like.rows()});
  // A counting sort by line (head and row): count the entries of each line, turn the counts into
  // offsets, and put each entry's index in its line. Within a line, Entries sorts by column.
  std::vector<std::int64_t> begin(lines + 1, 0);
  const auto line_of = [&](std::size_t at) {
    const std::int64_t head = heads.empty() ? 0 : heads[at];
    return static_cast<std::size_t>(head * like.rows() + rows[at]);
  };
  for (std::size_t at = 0; at < rows.size(); ++at) {
    if (rows[at] < 0 || rows[at] >= like.rows()) {
      base::fail(ErrorCode::kInvalidArgument, "rows[{}] is {}; there are {} rows of blocks", at,
                 rows[at], like.rows());
    }
    if (!heads.empty() && (heads[at] < 0 || heads[at] >= sizes.heads)) {
      base::fail(ErrorCode::kInvalidArgument, "heads[{}] is {}; there are {}", at, heads[at],
                 sizes.heads);
    }
    layout::check_flag("partial", partial, at);
    ++begin[line_of(at) + 1];
  }
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  std::vector<std::int64_t> next(begin.begin(), begin.end() - 1);
  std::vector<std::size_t> order(rows.size());
  for (std::size_t at = 0; at < rows.size(); ++at) {
    order[static_cast<std::size_t>(next[line_of(at)]++)] = at;
  }
  Builder builder(sizes.block_rows, sizes.block_columns, sizes.seq_q, sizes.seq_k, sizes.heads);
  layout::Entries entries("columns", like.columns());
  for (std::size_t line = 0; line < lines; ++line) {
    for (std::int64_t i = begin[line]; i < begin[line + 1]; ++i) {
      const std::size_t at = order[static_cast<std::size_t>(i)];
      entries.add(columns[at], layout::block_of(partial, at), static_cast<std::int64_t>(at));
    }
    entries.finish(&builder);
  }
  return builder.finish({});
}

CooArrays to_coo(const LayoutView& from) {
  const base::Work work({}, "writing coordinates");
  from.validate();
  CooArrays to;
  for (std::int64_t query = 0; query < from.query_heads(); ++query) {
    const std::int64_t head = from.distinct_head(query);
    for (std::int64_t row = 0; row < from.rows(); ++row) {
      const auto columns = from.row(head, row);
      const auto flags = from.partial_row(head, row);
      base::charge(1 + static_cast<std::int64_t>(columns.size()));
      to.heads.insert(to.heads.end(), columns.size(), static_cast<std::int32_t>(query));
      to.rows.insert(to.rows.end(), columns.size(), static_cast<std::int32_t>(row));
      to.columns.insert(to.columns.end(), columns.begin(), columns.end());
      to.partial.insert(to.partial.end(), flags.begin(), flags.end());
    }
  }
  return to;
}

BlockLayout from_topk(const LayoutSizes& sizes, std::int64_t k,
                      std::span<const std::int32_t> indices,
                      std::span<const std::uint8_t> partial) {
  const base::Work work({}, "reading lists of blocks");
  const LayoutView like = layout::checked(sizes);
  layout::check_count("indices", indices.size(), {sizes.heads, like.rows(), k});
  if (!partial.empty()) {
    layout::check_count("partial", partial.size(), {sizes.heads, like.rows(), k});
  }
  // With k = 0, `indices` is empty for any number of rows, so array_size() limits that number.
  const std::size_t lines = layout::array_size("indptr", {sizes.heads, like.rows()});
  Builder builder(sizes.block_rows, sizes.block_columns, sizes.seq_q, sizes.seq_k, sizes.heads);
  layout::Entries entries("indices", like.columns());
  std::size_t at = 0;
  for (std::size_t line = 0; line < lines; ++line) {
    for (std::int64_t i = 0; i < k; ++i, ++at) {
      layout::check_flag("partial", partial, at);
      if (indices[at] == -1) continue;
      entries.add(indices[at], layout::block_of(partial, at), static_cast<std::int64_t>(at));
    }
    entries.finish(&builder);
  }
  return builder.finish({});
}

TopKArrays to_topk(const LayoutView& from) {
  const base::Work work({}, "writing lists of blocks");
  from.validate();
  TopKArrays to;
  for (std::int64_t query = 0; query < from.query_heads(); ++query) {
    base::charge(from.rows());
    for (std::int64_t row = 0; row < from.rows(); ++row) {
      to.k = std::max(to.k,
                      static_cast<std::int64_t>(from.row(from.distinct_head(query), row).size()));
    }
  }
  to.indices.assign(layout::array_size("indices", {from.query_heads(), from.rows(), to.k}), -1);
  if (!from.partial.empty()) to.partial.assign(to.indices.size(), 0);
  std::ptrdiff_t at = 0;
  for (std::int64_t query = 0; query < from.query_heads(); ++query) {
    base::charge(from.rows());  // array_size() charges the steps of the blocks
    for (std::int64_t row = 0; row < from.rows(); ++row, at += to.k) {
      const auto columns = from.row(from.distinct_head(query), row);
      const auto flags = from.partial_row(from.distinct_head(query), row);
      std::copy(columns.begin(), columns.end(), to.indices.begin() + at);
      if (!flags.empty()) std::copy(flags.begin(), flags.end(), to.partial.begin() + at);
    }
  }
  return to;
}

}  // namespace annulus::inline v0
