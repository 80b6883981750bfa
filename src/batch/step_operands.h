#ifndef ANNULUS_BATCH_STEP_OPERANDS_H_
#define ANNULUS_BATCH_STEP_OPERANDS_H_

// What all kernels of batches ask of the metadata of a step and of K and V in pages, and how they
// are told of them.

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
// Rows and heads that need places of their own, as all do that are written.
void check_distinct(const char* name, const RowStrides& strides, std::int64_t rows,
                    std::int64_t heads);
// K or V of so many pages. `one_row` says that no page has a second row, whose stride would matter.
// Throws Error{kUnsupported} for row strides that no kernel takes.
void check_keys(const char* name, const BatchStrides& strides, std::int64_t pages, bool one_row);
// The metadata of a step whose pages have so many rows; 0: there are none.
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
