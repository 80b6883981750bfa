#include "batch/step_operands.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "attention/problem/operands.h"
#include "base/fail.h"

namespace annulus::batch {
namespace {

using attention::check_address;
using attention::check_unused;

constexpr std::int64_t kMaxPages = std::numeric_limits<std::int32_t>::max();
// Begins have 32 bits.
constexpr std::int64_t kMaxEntries = std::numeric_limits<std::int32_t>::max();

void check_entries(const char* name, std::int64_t entries, const PageTable& table) {
  attention::check_count(name, entries, 0, kMaxEntries);
  if (entries == 0 || table.begin != nullptr) return;
  base::fail(ErrorCode::kInvalidArgument,
             "{} is {}, but `begin` of its page table is null; set it, or give 0", name, entries);
}

}  // namespace

void check_optional(const char* name, const void* data, std::uintptr_t alignment) {
  if (data != nullptr) check_address(name, data, alignment);
}

void check_stride(const char* tensor, const char* axis, std::int64_t stride) {
  constexpr std::int64_t kFar = std::int64_t{1} << 58;
  if (stride % 8 == 0 && stride > -kFar && stride < kFar) return;
  base::fail(ErrorCode::kInvalidArgument,
             "the {} stride of {} is {} elements; it must be a multiple of 8 within 2^58", axis,
             tensor, stride);
}

void check_row_dim(const char* name, std::int64_t dim, std::int64_t most) {
  attention::check_count(name, dim, 8, most);
  if (dim % 8 == 0) return;
  base::fail(ErrorCode::kUnsupported,
             "{} is {}; rows are moved 8 elements at a time, so give a multiple of 8", name, dim);
}

void check_rows(const char* name, const void* data, const RowStrides& strides) {
  check_address(name, data, 16);
  check_stride(name, "row", strides.row);
  check_stride(name, "head", strides.head);
}

void check_distinct(const char* name, const RowStrides& strides, std::int64_t rows,
                    std::int64_t heads, std::int64_t dim) {
  attention::check_distinct(name, {{{"row", rows, strides.row}, {"head", heads, strides.head}}},
                            dim);
}

void check_distinct_lse(const RowStrides& strides, std::int64_t max_rows, std::int64_t heads) {
  const bool one_row = strides.row == strides.head && strides.row != 0;
  check_distinct("LSE", strides, one_row ? 1 : certain_rows(max_rows), heads, 1);
}

void check_given(const char* name, const RowStrides& strides, std::int64_t rows,
                 std::int64_t heads) {
  if ((strides.row != 0 || rows == 1) && (strides.head != 0 || heads == 1)) return;
  base::fail(ErrorCode::kInvalidArgument,
             "the strides of {} are {} and {} elements for row and head, so all rows or all heads "
             "would be the same; give strides that differ from 0",
             name, strides.row, strides.head);
}

void check_keys(const char* name, const BatchStrides& strides, std::int64_t pages, bool one_row) {
  check_stride(name, "page", strides.page);
  check_stride(name, "row", strides.row);
  check_stride(name, "head", strides.head);
  if (strides.row >= kMaxPosition || strides.row <= -kMaxPosition) {
    base::fail(ErrorCode::kUnsupported,
               "the row stride of {} is {} elements; kernels of batches take less than 2^30", name,
               strides.row);
  }
  if (strides.row == 0 && !one_row) {
    base::fail(
        ErrorCode::kInvalidArgument,
        "the row stride of {} is 0, so all keys of a page would be the same; give another stride",
        name);
  }
  if (pages >= 0 && pages <= kMaxPages) return;
  base::fail(ErrorCode::kInvalidArgument, "{} has {} pages; give a number from 0 to 2^31 - 1", name,
             pages);
}

void check_metadata(const BatchMetadata& metadata, std::int64_t page_rows) {
  check_address("q_begin", metadata.q_begin, 4);
  check_address("k_length", metadata.k_length, 4);
  check_optional("requests", metadata.requests, 4);
  check_optional("k_position", metadata.k_position, 4);
  check_entries("k_entries", metadata.k_entries, metadata.k_pages);
  check_entries("v_entries", metadata.v_entries, metadata.v_pages);
  if (page_rows == 0) {
    constexpr const char* kReason = "the problem has no pages (page_rows)";
    check_unused("k_pages.ids", metadata.k_pages.ids, kReason);
    check_unused("v_pages.ids", metadata.v_pages.ids, kReason);
    check_optional("k_begin", metadata.k_begin, 4);
    check_optional("v_begin", metadata.v_begin, 4);
    return;
  }
  constexpr const char* kReason = "the problem has pages, which give the places of keys";
  check_unused("k_begin", metadata.k_begin, kReason);
  check_unused("v_begin", metadata.v_begin, kReason);
  check_address("k_pages.ids", metadata.k_pages.ids, 4);
  for (const PageTable* table : {&metadata.k_pages, &metadata.v_pages}) {
    check_optional("the ids of a page table", table->ids, 4);
    check_optional("the begins of a page table", table->begin, 4);
    if (table->ids == nullptr || table->begin != nullptr) continue;
    if (table->width > 0 && table->width <= kMaxPosition) continue;
    base::fail(ErrorCode::kInvalidArgument,
               "the width of a page table is {}; give the entries of a row, from 1 to 2^30, or "
               "where each request's entries begin",
               table->width);
  }
}

void check_interleave(const KeyInterleave& interleave) {
  constexpr std::int64_t kMaxRanks = 1024, kMaxPeriod = std::int64_t{1} << 24;
  const auto& [block, ranks, rank] = interleave;
  attention::check_count("interleave.ranks", ranks, 1, kMaxRanks);
  attention::check_count("interleave.rank", rank, 0, ranks - 1);
  attention::check_count("interleave.block", block, 1, kMaxPosition);
  if (block * ranks <= kMaxPeriod) return;
  base::fail(ErrorCode::kUnsupported,
             "{} ranks have blocks of {} keys in turn; kernels take up to 2^24 keys from one block "
             "of a rank to the next",
             ranks, block);
}

kernels::Interleave interleave_of(const KeyInterleave& interleave) {
  if (interleave.ranks == 1) return {};
  const std::int64_t period = interleave.block * interleave.ranks;
  const Divisor by_block = divisor_of(interleave.block), by_period = divisor_of(period);
  return {.block = static_cast<int>(interleave.block),
          .period = static_cast<int>(period),
          .before = static_cast<int>(interleave.block * interleave.rank),
          .block_factor = by_block.factor,
          .block_shift = by_block.shift,
          .period_factor = by_period.factor,
          .period_shift = by_period.shift};
}

// The factor is 2^shift / number, rounded up. It is at most 2^32 - 1, and gives exact quotients for
// all keys below 2^31, because shift is 31 + ceil(log2(number)) (Granlund and Montgomery, Division
// by Invariant Integers using Multiplication, 1994, theorem 4.2).
Divisor divisor_of(std::int64_t number) {
  const auto n = static_cast<std::uint64_t>(number);
  const int shift = 31 + static_cast<int>(std::bit_width(n - 1));
  return {static_cast<unsigned>(((std::uint64_t{1} << shift) + n - 1) / n), shift};
}

kernels::KeyPlaces places_of(const BatchMetadata& metadata) {
  const auto table = [](const PageTable& pages, std::int64_t entries) -> kernels::PageTableParams {
    return {pages.ids, pages.begin, pages.width, entries == 0 ? kMaxEntries : entries};
  };
  const kernels::PageTableParams k_pages = table(metadata.k_pages, metadata.k_entries);
  return {.k_pages = k_pages,
          .v_pages = metadata.v_pages.ids == nullptr ? k_pages
                                                     : table(metadata.v_pages, metadata.v_entries),
          .k_begin = metadata.k_begin,
          .v_begin = metadata.v_begin != nullptr ? metadata.v_begin : metadata.k_begin};
}

int page_count(std::int64_t pages) { return static_cast<int>(pages == 0 ? kMaxPages : pages); }

}  // namespace annulus::batch

namespace annulus::inline v0 {

std::int64_t held_keys(const KeyInterleave& interleave, std::int64_t keys) {
  batch::check_interleave(interleave);
  attention::check_count("keys", keys, 0, kMaxPosition);
  const std::int64_t period = interleave.block * interleave.ranks;
  const std::int64_t rest = keys % period - interleave.block * interleave.rank;
  return keys / period * interleave.block + std::clamp<std::int64_t>(rest, 0, interleave.block);
}

}  // namespace annulus::inline v0
