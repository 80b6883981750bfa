#ifndef ANNULUS_BATCH_STEP_OPERANDS_H_
#define ANNULUS_BATCH_STEP_OPERANDS_H_

// The checks and parameters that all kernels of batches share, for the metadata of a step and for K
// and V in pages.

#include <algorithm>

#include "annulus/batch.h"
#include "params/batch_params.h"

namespace annulus::batch {

constexpr std::int64_t kMaxRequests = 65535;  // requests of a step

// These functions throw Error{kInvalidArgument}, which names the wrong value.

// Checks an address that may be null.
void check_optional(const char* name, const void* data, std::uintptr_t alignment);
// Checks a stride in elements. Copies take 8 elements at a time.
void check_stride(const char* tensor, const char* axis, std::int64_t stride);
// Checks a head dim of rows that are moved 8 elements at a time. Throws Error{kUnsupported} if it
// is not a multiple of 8.
void check_row_dim(const char* name, std::int64_t dim, std::int64_t most);
// Checks a tensor [rows, heads, dim] of such rows.
void check_rows(const char* name, const void* data, const RowStrides& strides);
// Throws if strides of a tensor that is read were left 0: all rows or all heads would be the same.
void check_given(const char* name, const RowStrides& strides, std::int64_t rows,
                 std::int64_t heads);
// Checks that no elements of a tensor [rows, heads, dim] that is written overlap.
void check_distinct(const char* name, const RowStrides& strides, std::int64_t rows,
                    std::int64_t heads, std::int64_t dim);
// The rows with which check_distinct is called if the number of rows is in device memory. A step
// that may have more than one row is checked as if it had two.
inline constexpr std::int64_t kSomeRows = 2;
inline std::int64_t certain_rows(std::int64_t most) { return std::min(most, kSomeRows); }
// Checks LSE [rows, heads] that is written, for steps whose number of rows is in device memory. An
// LSE in the order [heads, rows] has equal strides in a step with one row, so equal strides mean
// one row.
void check_distinct_lse(const RowStrides& strides, std::int64_t max_rows, std::int64_t heads);
// Checks K or V in `pages` pages. With `one_row` no page has a second row, so the row stride does
// not matter. Throws Error{kUnsupported} for row strides that no kernel takes.
void check_keys(const char* name, const BatchStrides& strides, std::int64_t pages, bool one_row);
// Checks the metadata of a step whose pages have `page_rows` rows; 0: there are no pages.
void check_metadata(const BatchMetadata& metadata, std::int64_t page_rows);

// Throws Error{kInvalidArgument} for a rank that does not exist, and Error{kUnsupported} for
// numbers beyond the limits of kernels.
void check_interleave(const KeyInterleave& interleave);
// The parameters of kernels whose keys are interleaved. They are empty if the rank has all keys.
kernels::Interleave interleave_of(const KeyInterleave& interleave);

// The factor and the shift that divide keys below 2^31 by a number from 1 to 2^30
// (kernels::quotient_of).
struct Divisor {
  unsigned factor = 0;
  int shift = 0;
};
Divisor divisor_of(std::int64_t number);

// The places of the keys of a step.
kernels::KeyPlaces places_of(const BatchMetadata& metadata);
// BatchOperands::k_pages or v_pages, with its default filled in.
int page_count(std::int64_t pages);

}  // namespace annulus::batch

#endif  // ANNULUS_BATCH_STEP_OPERANDS_H_
