#ifndef ANNULUS_BATCH_STEP_OPERANDS_H_
#define ANNULUS_BATCH_STEP_OPERANDS_H_

// What all kernels of batches ask of the metadata of a step and of K and V in pages, and how they
// are told of them.

#include <algorithm>

#include "annulus/batch.h"
#include "params/batch_params.h"

namespace annulus::batch {

constexpr std::int64_t kMostRequests = 65535;  // of a step

// Throw Error{kInvalidArgument}, naming what is wrong.

// An address that may be null.
void check_optional(const char* name, const void* data, std::uintptr_t alignment);
// Strides count elements, of which copies take 8 at a time.
void check_stride(const char* tensor, const char* axis, std::int64_t stride);
// A head dim of rows that are moved by 8 elements. Throws Error{kUnsupported} for one that is not
// a multiple.
void check_row_dim(const char* name, std::int64_t dim, std::int64_t most);
// A tensor [rows, heads, dim] of such rows.
void check_rows(const char* name, const void* data, const RowStrides& strides);
// Refuses forgotten strides of a tensor that is read: strides of 0, by which all rows or all heads
// would be one.
void check_given(const char* name, const RowStrides& strides, std::int64_t rows,
                 std::int64_t heads);
// A tensor [rows, heads, dim] that is written: none of its elements may overlap.
void check_distinct(const char* name, const RowStrides& strides, std::int64_t rows,
                    std::int64_t heads, std::int64_t dim);
// The rows with which check_distinct is called if their number is in device memory: a step that may
// have more than one row is taken to have two.
inline constexpr std::int64_t kSomeRows = 2;
inline std::int64_t certain_rows(std::int64_t most) { return std::min(most, kSomeRows); }
// LSE [rows, heads] that is written, of steps whose number of rows is in device memory. An LSE in
// the order [heads, rows] has equal strides in a step with one row, so equal strides mean one row.
void check_distinct_lse(const RowStrides& strides, std::int64_t most_rows, std::int64_t heads);
// K or V of `pages` pages. `one_row` says that no page has a second row, whose stride would matter.
// Throws Error{kUnsupported} for row strides that no kernel takes.
void check_keys(const char* name, const BatchStrides& strides, std::int64_t pages, bool one_row);
// The metadata of a step whose pages have `page_rows` rows; 0: there are no pages.
void check_metadata(const BatchMetadata& metadata, std::int64_t page_rows);

// Throws Error{kInvalidArgument} for what is no rank, and Error{kUnsupported} beyond what kernels
// take.
void check_interleave(const KeyInterleave& interleave);
// For the kernels whose keys are interleaved; nothing where all keys are at hand.
kernels::Interleave interleave_of(const KeyInterleave& interleave);

// The factor and the shift that divide keys below 2^31 by a number from 1 to 2^30
// (kernels::quotient_of).
struct Divisor {
  unsigned factor = 0;
  int shift = 0;
};
Divisor divisor_of(std::int64_t number);

// Where the keys of a step lie.
kernels::KeyPlaces places_of(const BatchMetadata& metadata);
// BatchOperands::k_pages or v_pages with its default.
int page_count(std::int64_t pages);

}  // namespace annulus::batch

#endif  // ANNULUS_BATCH_STEP_OPERANDS_H_
