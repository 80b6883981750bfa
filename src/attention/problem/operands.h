#ifndef ANNULUS_ATTENTION_PROBLEM_OPERANDS_H_
#define ANNULUS_ATTENTION_PROBLEM_OPERANDS_H_

// The checks that validate() makes of a problem and its operands.

#include <array>
#include <cstdint>
#include <span>

#include "annulus/problem.h"

namespace annulus::attention {

// Throw Error{kInvalidArgument}, naming what was given: a number outside [least, most]; an address
// that is null or not a multiple of `alignment` bytes; an address that the problem does not use.
void check_count(const char* name, std::int64_t value, std::int64_t least, std::int64_t most);
void check_address(const char* name, const void* data, std::uintptr_t alignment);
void check_unused(const char* name, const void* data, const char* why);

struct RowExtents {
  std::int64_t batch, rows, heads;
};

// Throws Error{kInvalidArgument} if all rows of a tensor that is read would be the same row, unless
// `broadcast_rows` states that this is intended. Such strides are usually strides that the caller
// forgot to set.
void check_rows_given(const char* name, const Strides& strides, const RowExtents& extents,
                      std::int64_t dim, bool broadcast_rows);
// This is the same check for strides that are given before there are operands.
void check_rows_given(const Problem& problem, const OperandStrides& strides);

// Throw Error{kInvalidArgument} if the arrays of a state in host memory do not have the sizes that
// the state declares, if it has another version, or if it does not have these rows and values.
void check_host_state(const char* name, const HostState& state);
void check_host_state(const char* name, const HostState& state, std::int64_t rows,
                      std::int64_t dim_v);

// An axis of a tensor, with its stride in elements.
struct Axis {
  const char* name;
  std::int64_t extent;
  std::int64_t stride;
};
// Throws Error{kInvalidArgument} if writers of two elements of a tensor would race because both
// have the same address. `dim` elements of the innermost axis are contiguous. The axes have to
// nest: each stride is at least the span of all axes with smaller strides.
void check_distinct(const char* name, std::array<Axis, 3> axes, std::int64_t dim);

// Checks Q and K, for kernels that read nothing else.
void check_queries_and_keys(const Problem& problem, const Operands& operands);

// A tensor of a call. Tensors with the same `shared` may have the same address, unless `shared` is
// 0.
struct Place {
  const char* name;
  const void* data;
  bool written;
  int shared;
};
// Throws if a tensor that is written begins where another tensor begins.
void check_overlaps(std::span<const Place> places);

// Throws if a tensor that the problem writes begins where another tensor begins. O may have the
// address of Q, and the state its own address. Requires: there are query rows.
void check_overlaps(const Problem& problem, const Operands& operands);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_PROBLEM_OPERANDS_H_
