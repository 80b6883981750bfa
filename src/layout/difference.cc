#include <fmt/core.h>

#include <vector>

#include "base/fail.h"
#include "base/work.h"
#include "layout/builder.h"

namespace annulus::layout {
namespace {

// Collects columns as ranges: " -4..7 -9" for the sign '-'.
class Ranges {
 public:
  explicit Ranges(char sign) : sign_(sign) {}
  void add(std::int64_t column) {
    if (column != end_) flush();
    if (begin_ < 0) begin_ = column;
    end_ = column + 1;
  }
  std::string take() {
    flush();
    return std::move(text_);
  }

 private:
  void flush() {
    if (begin_ >= 0 && end_ - begin_ == 1) text_ += fmt::format(" {}{}", sign_, begin_);
    if (begin_ >= 0 && end_ - begin_ > 1) {
      text_ += fmt::format(" {}{}..{}", sign_, begin_, end_ - 1);
    }
    begin_ = end_ = -1;
  }
  char sign_;
  std::int64_t begin_ = -1;
  std::int64_t end_ = -1;
  std::string text_;
};

bool compare_sizes(const LayoutView& a, const LayoutView& b, std::string* text) {
  const auto compare = [&](const char* name, std::int64_t in_a, std::int64_t in_b) {
    if (in_a != in_b) *text += fmt::format("{}: {} and {}\n", name, in_a, in_b);
  };
  compare("R", a.block_rows, b.block_rows);
  compare("C", a.block_columns, b.block_columns);
  compare("Sq", a.seq_q, b.seq_q);
  compare("Sk", a.seq_k, b.seq_k);
  // A layout of one query head stands for any number of heads, so it is compared with each head of
  // the other layout.
  if (a.query_heads() != 1 && b.query_heads() != 1) {
    compare("heads", a.query_heads(), b.query_heads());
  }
  return text->empty();
}

// Returns a text such as " -4..7 +9 ~11" for one row, or an empty text if the rows are equal. Adds
// to the counts of blocks that differ.
std::string compare_rows(const LayoutView& a, std::int64_t a_head, const LayoutView& b,
                         std::int64_t b_head, std::int64_t row, LayoutDifference* counts) {
  Ranges gone('-'), come('+'), other('~');
  std::int64_t i = begin_of(a, a_head, row);
  std::int64_t j = begin_of(b, b_head, row);
  const std::int64_t a_end = begin_of(a, a_head, row + 1);
  const std::int64_t b_end = begin_of(b, b_head, row + 1);
  base::charge(1 + a_end - i + b_end - j);
  while (i < a_end || j < b_end) {
    const std::int64_t in_a = i < a_end ? a.indices[static_cast<std::size_t>(i)] : INT64_MAX;
    const std::int64_t in_b = j < b_end ? b.indices[static_cast<std::size_t>(j)] : INT64_MAX;
    if (in_a < in_b) {
      gone.add(in_a);
      ++counts->only_first;
    } else if (in_b < in_a) {
      come.add(in_b);
      ++counts->only_second;
    } else if (block_at(a, i) != block_at(b, j)) {
      other.add(in_a);
      ++counts->flags;
    }
    if (in_a <= in_b) ++i;
    if (in_b <= in_a) ++j;
  }
  return gone.take() + come.take() + other.take();
}

}  // namespace
}  // namespace annulus::layout

namespace annulus::inline v0 {

// Compares query head by query head, so that layouts with other head maps can be equal. Rows beyond
// max_lines are counted but not written.
LayoutDifference difference(const LayoutView& first, const LayoutView& second,
                            std::int64_t max_lines) {
  const base::Work work({}, "comparing layouts");
  first.validate();
  second.validate();
  if (max_lines < 0) {
    base::fail(ErrorCode::kInvalidArgument, "max_lines is {}; give 0 or more", max_lines);
  }
  LayoutDifference result;
  result.same_sizes = layout::compare_sizes(first, second, &result.text);
  if (!result.same_sizes) return result;
  std::int64_t lines = 0;
  const std::int64_t of_first = first.query_heads();
  const std::int64_t of_second = second.query_heads();
  for (std::int64_t head = 0; head < std::max(of_first, of_second); ++head) {
    const std::int64_t in_first = first.distinct_head(of_first == 1 ? 0 : head);
    const std::int64_t in_second = second.distinct_head(of_second == 1 ? 0 : head);
    for (std::int64_t row = 0; row < first.rows(); ++row) {
      const std::string line =
          layout::compare_rows(first, in_first, second, in_second, row, &result);
      if (line.empty()) continue;
      if (++lines <= max_lines) {
        result.text += fmt::format("head {} row {}:{}\n", head, row, line);
      }
    }
  }
  if (lines > max_lines) result.text += fmt::format("{} more rows\n", lines - max_lines);
  if (lines > 0) {
    result.text += fmt::format("{} blocks removed, {} added, {} with another flag\n",
                               result.only_first, result.only_second, result.flags);
  }
  return result;
}

}  // namespace annulus::inline v0
