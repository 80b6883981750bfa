#ifndef ANNULUS_ATTENTION_PROBLEM_OPERANDS_H_
#define ANNULUS_ATTENTION_PROBLEM_OPERANDS_H_

// Parts of validate(), the checks of a problem and its operands.

#include <array>
#include <cstdint>
#include <span>

#include "annulus/problem.h"

namespace annulus::attention {

// Throw Error{kInvalidArgument}, naming what was given: a number out of [least, most], an address
// that is null or no multiple of `alignment` bytes, an address that nobody has a use for.
void check_count(const char* name, std::int64_t value, std::int64_t least, std::int64_t most);
void check_address(const char* name, const void* data, std::uintptr_t alignment);
void check_unused(const char* name, const void* data, const char* why);

struct RowExtents {
  std::int64_t batch, rows, heads;
};

// Throws Error{kInvalidArgument} where the rows of a tensor that is read would all be one, which is
// what strides look like that somebody forgot, unless `broadcast_rows` says that it is meant.
void check_rows_given(const char* name, const Strides& strides, const RowExtents& extents,
                      std::int64_t dim, bool broadcast_rows);
// The same for strides that are told before there are operands.
void check_rows_given(const Problem& problem, const OperandStrides& strides);

// Throw Error{kInvalidArgument} where the arrays of a state in host memory have not the sizes that
// it says, where it has another version, and where it has not these rows and values.
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
// nest: each stride is at least what the axes of smaller strides span.
void check_distinct(const char* name, std::array<Axis, 3> axes, std::int64_t dim);

// The checks of Q and K, for kernels that read nothing else.
void check_queries_and_keys(const Problem& problem, const Operands& operands);

// A tensor of a call. Those with the same `shared` other than 0 may be in one place.
struct Place {
  const char* name;
  const void* data;
  bool written;
  int shared;
};
// Throws if a tensor that is written begins where another one does.
void check_overlaps(std::span<const Place> places);

// Throws if a tensor that the problem writes begins where another one does, but O may be over Q and
// the state over itself. Requires: there are query rows.
void check_overlaps(const Problem& problem, const Operands& operands);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_PROBLEM_OPERANDS_H_
