#include "batch/step_operands.h"

#include <limits>

#include "attention/problem/operands.h"
#include "base/fail.h"

namespace annulus::batch {
namespace {

using attention::check_address;
using attention::check_unused;

constexpr std::int64_t kMostPages = std::numeric_limits<std::int32_t>::max();

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
  base::fail(ErrorCode::kUnsupported, "{} is {}; rows are moved by 8 elements, so give a multiple",
             name, dim);
}

void check_rows(const char* name, const void* data, const RowStrides& strides) {
  check_address(name, data, 16);
  check_stride(name, "row", strides.row);
  check_stride(name, "head", strides.head);
}

void check_distinct(const char* name, const RowStrides& strides, std::int64_t rows,
                    std::int64_t heads) {
  if ((strides.row != 0 || rows == 1) && (strides.head != 0 || heads == 1)) return;
  base::fail(ErrorCode::kInvalidArgument,
             "the strides of {} are {} and {} elements for row and head, so that rows or heads "
             "would be one; give them",
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
    base::fail(ErrorCode::kInvalidArgument,
               "the row stride of {} is 0, so that all keys of a page would be one; give it", name);
  }
  if (pages >= 0 && pages <= kMostPages) return;
  base::fail(ErrorCode::kInvalidArgument, "{} has {} pages; give a number from 0 to 2^31 - 1", name,
             pages);
}

void check_metadata(const BatchMetadata& metadata, std::int64_t page_rows) {
  check_address("q_begin", metadata.q_begin, 4);
  check_address("k_length", metadata.k_length, 4);
  check_optional("requests", metadata.requests, 4);
  check_optional("k_position", metadata.k_position, 4);
  if (page_rows == 0) {
    constexpr const char* kReason = "the problem has no pages (page_rows)";
    check_unused("k_pages.ids", metadata.k_pages.ids, kReason);
    check_unused("v_pages.ids", metadata.v_pages.ids, kReason);
    check_optional("k_begin", metadata.k_begin, 4);
    check_optional("v_begin", metadata.v_begin, 4);
    return;
  }
  constexpr const char* kReason = "the problem has pages, which say where keys begin";
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

kernels::KeyPlaces places_of(const BatchMetadata& metadata) {
  const auto table = [](const PageTable& pages) -> kernels::PageTableParams {
    return {pages.ids, pages.begin, pages.width};
  };
  return {.k_pages = table(metadata.k_pages),
          .v_pages = table(metadata.v_pages.ids != nullptr ? metadata.v_pages : metadata.k_pages),
          .k_begin = metadata.k_begin,
          .v_begin = metadata.v_begin != nullptr ? metadata.v_begin : metadata.k_begin};
}

int page_count(std::int64_t pages) { return static_cast<int>(pages == 0 ? kMostPages : pages); }

}  // namespace annulus::batch
