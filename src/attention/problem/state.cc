#include "annulus/problem.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "attention/problem/operands.h"
#include "base/fail.h"

namespace annulus::attention {

void check_host_state(const char* name, const HostState& state) {
  if (state.version != kStateVersion) {
    base::fail(ErrorCode::kInvalidArgument,
               "state {} has version {}; this library reads version {}", name, state.version,
               kStateVersion);
  }
  const auto rows = static_cast<std::size_t>(state.rows);
  if (state.rows < 0 || state.dim_v < 1 || state.m.size() != rows || state.l.size() != rows ||
      state.acc.size() != rows * static_cast<std::size_t>(state.dim_v)) {
    base::fail(ErrorCode::kInvalidArgument,
               "state {} has {} rows of {} values by its fields, but holds {} acc, {} m and {} l",
               name, state.rows, state.dim_v, state.acc.size(), state.m.size(), state.l.size());
  }
}

void check_host_state(const char* name, const HostState& state, std::int64_t rows,
                      std::int64_t dim_v) {
  check_host_state(name, state);
  if (state.rows == rows && state.dim_v == dim_v) return;
  base::fail(ErrorCode::kInvalidArgument,
             "state {} has {} rows of {} values; the problem has {} of {}", name, state.rows,
             state.dim_v, rows, dim_v);
}

}  // namespace annulus::attention

namespace annulus::inline v0 {
namespace {

using attention::check_host_state;

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

}  // namespace

HostState HostState::empty(std::int64_t rows, std::int64_t dim_v) {
  if (rows < 0 || dim_v < 1) {
    base::fail(ErrorCode::kInvalidArgument, "a state of {} rows of {} values cannot be", rows,
               dim_v);
  }
  HostState state;
  state.rows = rows;
  state.dim_v = dim_v;
  state.acc.assign(static_cast<std::size_t>(rows * dim_v), 0.0f);
  state.m.assign(static_cast<std::size_t>(rows), kMinusInfinity);
  state.l.assign(static_cast<std::size_t>(rows), 0.0f);
  return state;
}

HostState merge(const HostState& a, const HostState& b) {
  check_host_state("a", a);
  check_host_state("b", b);
  if (a.rows != b.rows || a.dim_v != b.dim_v) {
    base::fail(ErrorCode::kInvalidArgument,
               "states of {} rows of {} and {} rows of {} do not merge", a.rows, a.dim_v, b.rows,
               b.dim_v);
  }
  HostState merged = a;
  const auto dim = static_cast<std::size_t>(a.dim_v);
  for (std::size_t row = 0; row < static_cast<std::size_t>(a.rows); ++row) {
    // Only l states whether a row is empty. The m of an empty row never enters a subtraction,
    // because -inf minus -inf is NaN.
    if (b.l[row] == 0.0f) continue;
    float* to = merged.acc.data() + row * dim;
    const float* from = b.acc.data() + row * dim;
    if (a.l[row] == 0.0f) {
      std::copy(from, from + dim, to);
      merged.m[row] = b.m[row];
      merged.l[row] = b.l[row];
      continue;
    }
    const float m = std::isnan(a.m[row]) ? a.m[row] : std::max(b.m[row], a.m[row]);
    // NaN in either m reaches the result. Equal maxima have weight one; the difference of infinite
    // ones would be NaN.
    const float weight_a = a.m[row] == m ? 1.0f : std::exp2(a.m[row] - m);
    const float weight_b = b.m[row] == m ? 1.0f : std::exp2(b.m[row] - m);
    merged.m[row] = m;
    merged.l[row] = weight_a * a.l[row] + weight_b * b.l[row];
    for (std::size_t d = 0; d < dim; ++d) to[d] = weight_a * to[d] + weight_b * from[d];
  }
  return merged;
}

FinishedRows finish(const HostState& state, LseBase base) {
  check_host_state("to finish", state);
  FinishedRows rows;
  rows.o.assign(state.acc.size(), 0.0f);
  rows.lse.assign(state.l.size(), kMinusInfinity);
  const auto dim = static_cast<std::size_t>(state.dim_v);
  const double factor = base == LseBase::kNatural ? std::log(2.0) : 1.0;
  for (std::size_t row = 0; row < state.l.size(); ++row) {
    if (state.l[row] == 0.0f) continue;
    const double l = static_cast<double>(state.l[row]);
    rows.lse[row] = static_cast<float>(factor * (static_cast<double>(state.m[row]) + std::log2(l)));
    for (std::size_t d = row * dim; d < (row + 1) * dim; ++d) {
      rows.o[d] = static_cast<float>(static_cast<double>(state.acc[d]) / l);
    }
  }
  return rows;
}

}  // namespace annulus::inline v0
