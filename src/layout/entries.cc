#include "layout/entries.h"

#include <algorithm>

#include "base/fail.h"
#include "base/work.h"

namespace annulus::layout {
namespace {

// Returns false if the product overflows.
bool multiply(std::initializer_list<std::int64_t> product, std::int64_t* result) {
  *result = 1;
  for (const std::int64_t factor : product) {
    if (factor < 0 || __builtin_mul_overflow(*result, factor, result)) return false;
  }
  return true;
}

}  // namespace

LayoutView checked(const LayoutSizes& sizes) {
  LayoutView view;
  view.block_rows = sizes.block_rows;
  view.block_columns = sizes.block_columns;
  view.seq_q = sizes.seq_q;
  view.seq_k = sizes.seq_k;
  view.heads = sizes.heads;
  view.validate_sizes();
  return view;
}

void check_count(const char* name, std::size_t given, std::initializer_list<std::int64_t> product) {
  std::int64_t expected = 0;
  if (multiply(product, &expected) && given == static_cast<std::uint64_t>(expected)) return;
  std::string text;
  for (const std::int64_t factor : product) {
    text += fmt::format("{}{}", text.empty() ? "" : " x ", factor);
  }
  base::fail(ErrorCode::kInvalidArgument, "{} has {} entries; the sizes need {}", name, given,
             text);
}

std::size_t array_size(const char* name, std::initializer_list<std::int64_t> product) {
  constexpr std::int64_t kMax = std::int64_t{1} << 32;
  std::int64_t count = 0;
  if (!multiply(product, &count) || count > kMax) {
    base::fail(ErrorCode::kUnsupported,
               "{} would have more than 2^32 entries; use a format whose size depends on the kept "
               "blocks, such as csr",
               name);
  }
  base::expect(count, name);
  base::charge(count);
  return static_cast<std::size_t>(count);
}

void Entries::add(std::int64_t column, Block block, std::int64_t index) {
  if (column < 0 || column >= columns_) {
    base::fail(ErrorCode::kInvalidArgument, "{}[{}] is {}; there are {} block columns", name_,
               index, column, columns_);
  }
  row_.push_back({column, index, block});
}

void Entries::finish(Builder* builder) {
  const auto before = [](const Entry& a, const Entry& b) {
    return a.column != b.column ? a.column < b.column : a.index < b.index;
  };
  if (!std::is_sorted(row_.begin(), row_.end(), before)) {
    std::sort(row_.begin(), row_.end(), before);
  }
  for (std::size_t i = 0; i < row_.size(); ++i) {
    if (i > 0 && row_[i].column == row_[i - 1].column) {
      base::fail(ErrorCode::kInvalidArgument,
                 "{}[{}] is {}, which is in this row of blocks already, at {}", name_,
                 row_[i].index, row_[i].column, row_[i - 1].index);
    }
    builder->add(row_[i].column, row_[i].block);
  }
  row_.clear();
  builder->end_row();
}

}  // namespace annulus::layout
