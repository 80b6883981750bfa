#include "annulus/layout.h"

#include <limits>

#include "base/fail.h"
#include "base/math.h"

namespace annulus::inline v0 {
namespace {

// Blocks and lengths have the bounds of classify.cc, which keep sums of positions within +-2^60
// (evaluate.h). The bound of heads is kMaxPeriod in node.h.
constexpr std::int64_t kMaxBlock = std::int64_t{1} << 30;
constexpr std::int64_t kMaxLength = std::int64_t{1} << 48;
constexpr std::int64_t kMaxHeads = std::int64_t{1} << 20;

std::int64_t blocks_of(std::int64_t length, std::int64_t block) {
  return block > 0 ? base::ceil_div(length, block) : 0;
}

void check_range(const char* name, std::int64_t value, std::int64_t least, std::int64_t most) {
  if (value < least || value > most) {
    base::fail(ErrorCode::kInvalidArgument, "block layout: {} is {}; it must be in [{}, {}]", name,
               value, least, most);
  }
}

// Checks that one row follows another, from the first of the indices to the last.
void check_rows(const LayoutView& layout) {
  const std::span<const std::int64_t> indptr = layout.indptr;
  std::int64_t lines = 0;
  if (__builtin_mul_overflow(layout.heads, layout.rows(), &lines) ||
      indptr.size() != static_cast<std::uint64_t>(lines) + 1) {
    base::fail(ErrorCode::kInvalidArgument,
               "block layout: indptr has {} entries; {} heads of {} block rows need one for each "
               "row, and one more at the end",
               indptr.size(), layout.heads, layout.rows());
  }
  if (indptr[0] != 0) {
    base::fail(ErrorCode::kInvalidArgument, "block layout: indptr[0] is {}; it must be 0",
               indptr[0]);
  }
  // If indptr is monotone and both ends are right, every entry lies within indices.
  for (std::size_t i = 1; i < indptr.size(); ++i) {
    if (indptr[i] < indptr[i - 1]) {
      base::fail(ErrorCode::kInvalidArgument,
                 "block layout: indptr[{}] is {}, less than {} before it; indptr must not descend",
                 i, indptr[i], indptr[i - 1]);
    }
  }
  if (static_cast<std::uint64_t>(indptr.back()) != layout.indices.size()) {
    base::fail(ErrorCode::kInvalidArgument,
               "block layout: indptr ends at {}, but there are {} indices", indptr.back(),
               layout.indices.size());
  }
}

// Checks that the columns of each row ascend and lie within the layout. Requires: check_rows
// passes.
void check_columns(const LayoutView& layout) {
  const std::int64_t width = layout.columns();
  for (std::size_t line = 0; line + 1 < layout.indptr.size(); ++line) {
    std::int64_t before = -1;
    for (std::int64_t at = layout.indptr[line]; at < layout.indptr[line + 1]; ++at) {
      const std::int64_t column = layout.indices[static_cast<std::size_t>(at)];
      if (column <= before || column >= width) {
        const char* wrong = column < 0 || column >= width ? "out of range"
                            : column == before            ? "there twice"
                                                          : "not in ascending order";
        const auto number = static_cast<std::int64_t>(line);
        base::fail(ErrorCode::kInvalidArgument,
                   "block layout: indices[{}] = {} (head {}, block row {}, after {}) is {}; there "
                   "are {} block columns",
                   at, column, number / layout.rows(), number % layout.rows(), before, wrong,
                   width);
      }
      before = column;
    }
  }
}

void check_flags(const LayoutView& layout) {
  for (std::size_t i = 0; i < layout.partial.size(); ++i) {
    if (layout.partial[i] > 1) {
      base::fail(ErrorCode::kInvalidArgument, "block layout: partial[{}] is {}; it must be 0 or 1",
                 i, layout.partial[i]);
    }
  }
}

void check_head_map(const LayoutView& layout) {
  if (layout.head_map.empty()) return;
  check_range("the number of query heads", layout.query_heads(), 1, kMaxHeads);
  for (std::size_t i = 0; i < layout.head_map.size(); ++i) {
    if (layout.head_map[i] < 0 || layout.head_map[i] >= layout.heads) {
      base::fail(ErrorCode::kInvalidArgument,
                 "block layout: head_map[{}] is {}; there are {} distinct heads", i,
                 layout.head_map[i], layout.heads);
    }
  }
}

}  // namespace

std::int64_t BlockLayout::rows() const { return blocks_of(seq_q, block_rows); }
std::int64_t BlockLayout::columns() const { return blocks_of(seq_k, block_columns); }

std::span<const std::int32_t> BlockLayout::row(std::int64_t head, std::int64_t row) const {
  const auto at = static_cast<std::size_t>(head * rows() + row);
  return std::span(indices).subspan(static_cast<std::size_t>(indptr[at]),
                                    static_cast<std::size_t>(indptr[at + 1] - indptr[at]));
}

void BlockLayout::validate() const { LayoutView(*this).validate(); }

Density block_density(const BlockLayout& layout) { return block_density(LayoutView(layout)); }

LayoutView::LayoutView(const BlockLayout& layout)
    : block_rows(layout.block_rows),
      block_columns(layout.block_columns),
      seq_q(layout.seq_q),
      seq_k(layout.seq_k),
      heads(layout.heads),
      indptr(layout.indptr),
      indices(layout.indices),
      partial(layout.partial),
      head_map(layout.head_map) {}

std::int64_t LayoutView::rows() const { return blocks_of(seq_q, block_rows); }
std::int64_t LayoutView::columns() const { return blocks_of(seq_k, block_columns); }

std::span<const std::int32_t> LayoutView::row(std::int64_t head, std::int64_t row) const {
  const auto at = static_cast<std::size_t>(head * rows() + row);
  return indices.subspan(static_cast<std::size_t>(indptr[at]),
                         static_cast<std::size_t>(indptr[at + 1] - indptr[at]));
}

std::span<const std::uint8_t> LayoutView::partial_row(std::int64_t head, std::int64_t row) const {
  if (partial.empty()) return {};
  const auto at = static_cast<std::size_t>(head * rows() + row);
  return partial.subspan(static_cast<std::size_t>(indptr[at]),
                         static_cast<std::size_t>(indptr[at + 1] - indptr[at]));
}

void LayoutView::validate_sizes() const {
  check_range("R", block_rows, 1, kMaxBlock);
  check_range("C", block_columns, 1, kMaxBlock);
  check_range("Sq", seq_q, 0, kMaxLength);
  check_range("Sk", seq_k, 0, kMaxLength);
  check_range("heads", heads, 1, kMaxHeads);
  check_range("the number of block columns", columns(), 0,
              std::numeric_limits<std::int32_t>::max());
}

// The order matters: each check relies on the checks before it, so that arrays from a file are
// never read out of bounds.
void LayoutView::validate() const {
  validate_sizes();
  check_rows(*this);
  if (!partial.empty() && partial.size() != indices.size()) {
    base::fail(ErrorCode::kInvalidArgument,
               "block layout: partial has {} entries for {} kept blocks", partial.size(),
               indices.size());
  }
  check_columns(*this);
  check_flags(*this);
  check_head_map(*this);
}

Density block_density(const LayoutView& layout) {
  const double all = static_cast<double>(layout.rows()) * static_cast<double>(layout.columns()) *
                     static_cast<double>(layout.query_heads());
  if (all == 0) return {0};
  std::int64_t kept = 0;
  for (std::int64_t head = 0; head < layout.query_heads(); ++head) {
    const std::int64_t line = layout.distinct_head(head) * layout.rows();
    kept += layout.indptr[static_cast<std::size_t>(line + layout.rows())] -
            layout.indptr[static_cast<std::size_t>(line)];
  }
  return {static_cast<double>(kept) / all};
}

BlockLayout copy(const LayoutView& layout) {
  return {.block_rows = layout.block_rows,
          .block_columns = layout.block_columns,
          .seq_q = layout.seq_q,
          .seq_k = layout.seq_k,
          .heads = layout.heads,
          .indptr = {layout.indptr.begin(), layout.indptr.end()},
          .indices = {layout.indices.begin(), layout.indices.end()},
          .partial = {layout.partial.begin(), layout.partial.end()},
          .head_map = {layout.head_map.begin(), layout.head_map.end()}};
}

}  // namespace annulus::inline v0
