#ifndef ANNULUS_ORACLE_H_
#define ANNULUS_ORACLE_H_

// The oracle: attention in float64 on the host, computed directly from its definition, and the
// comparison of a result with it. It evaluates the pattern for every (query, key) pair, one at a
// time, and shares no code with the planner, the kernels or a device, so that results of this
// library or another one can be verified independently.
//
//   const annulus::Reference expected = annulus::reference(problem, inputs);
//   const annulus::Comparison made = annulus::compare(problem, expected, result);
//   if (!made.within_tolerance) report(made.first_wrong);
//
// annulus/problem.h explains the letters. All memory is the caller's host memory, which is read
// only during the call. Any thread may call these functions.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "annulus/problem.h"

namespace annulus::inline v0 {

// Host copies of Q, K and V with the device's memory order. Elements have the problem's dtype: the
// oracle reads the same bits as the kernel, after any rounding.
struct HostInputs {
  const void* q = nullptr;  // [B, Sq, H, Dqk] in the order of q_strides
  const void* k = nullptr;  // [B, Sk, Hkv, Dqk]
  const void* v = nullptr;  // [B, Sk, Hkv, Dv]
  Strides q_strides;
  Strides k_strides;
  Strides v_strides;
  const HostState* state_in = nullptr;  // B H Sq rows, with carry_in
  // See Operands for the rest.
  const float* scale_q = nullptr;
  const float* scale_k = nullptr;
  const float* scale_v = nullptr;
  bool broadcast_rows = false;
};

struct ReferenceOptions {
  // If the number of pairs, B H Sq Sk, exceeds this limit, only some rows are computed: the first
  // and the last `tile_rows` of every (batch, head) and `sampled_rows` more, drawn from `seed`. One
  // core evaluates about ten million pairs per second, and fewer if many pairs are visible.
  std::int64_t max_pairs = std::int64_t{1} << 31;
  std::int64_t tile_rows = 128;
  std::int64_t sampled_rows = 256;
  std::uint64_t seed = 0;
  // The number of threads; 0: one per processor of this process. They end before the call returns.
  // The result does not depend on it.
  int threads = 0;
  // Called sometimes, from one thread at a time, with the share of the rows that is done. The call
  // has no work limit; a WorkScope (annulus/types.h) limits and cancels it.
  std::function<void(double)> progress;
};

// The exact result for the rows that were computed.
struct Reference {
  std::int64_t batch = 0;
  std::int64_t heads = 0;
  std::int64_t seq_q = 0;
  std::int64_t dim_v = 0;
  std::vector<std::int64_t> rows;  // (b H + h) Sq + i, ascending
  std::vector<double> o;           // [rows, Dv]; 0 in empty rows
  std::vector<double> m;           // [rows], base 2; -inf in empty rows
  std::vector<double> l;           // [rows]; 0 in empty rows
  // [rows]: 1 if the row reads an operand or a scale that is not finite, else 0.
  std::vector<std::uint8_t> tainted;
  bool sampled() const { return static_cast<std::int64_t>(rows.size()) != batch * heads * seq_q; }
};

// Throws the errors of validate(problem), and Error{kInvalidArgument} if `inputs` lacks a tensor or
// a state that the problem reads, or an option is out of range.
ANNULUS_EXPORT Reference reference(const Problem& problem, const HostInputs& inputs,
                                   const ReferenceOptions& options = {});

// The outputs of a kernel in host memory: O and optionally LSE, or the state with carry_out.
struct HostResult {
  const std::uint16_t* o = nullptr;  // [B, Sq, H, Dv] in the order of o_strides, bits of the
  Strides o_strides;                 // problem's output dtype
  const float* lse = nullptr;  // [B, H, Sq] contiguous, in the problem's base; null: not checked
  const HostState* state = nullptr;  // the state instead, with carry_out
};

// The largest errors that a result may have.
struct Tolerance {
  double row = 0;        // relative L2 error of a row
  double frobenius = 0;  // relative Frobenius error of a (batch, head)
  double lse = 0;        // |difference| / max(1, |LSE|)
};
// The tolerance for Q, K and V of this dtype; docs/architecture.md explains it.
ANNULUS_EXPORT Tolerance tolerance(Dtype dtype);

// Relative errors are relative to the norm of the oracle's row, or to the norm of a row of the
// dtype's smallest normal numbers if that is larger. An error up to 2^-122 sqrt(dim_v) (1.9e-37 per
// element) counts as 0: kernels compute probabilities in fp32, and probabilities below 2^-126 next
// to a large sink logit become 0. Infinity marks an error that no tolerance allows: a value that is
// not finite although the oracle's is finite, or an empty row with O != 0 or LSE != -inf.
struct Comparison {
  double error_row_max = 0;
  double error_o = 0;
  // The error of LSE, 0 if there is none; with a carried state, the error of m + log2(l).
  double error_lse = 0;
  std::int64_t checked_rows = 0;
  std::int64_t tainted_rows = 0;  // rows that were not compared: they read an operand not finite
  std::int64_t wrong_rows = 0;    // rows beyond the tolerance of a row or of an LSE
  std::string first_wrong;        // position and values of the first wrong row; empty: none
  bool within_tolerance = false;  // true even if no row was compared: check checked_rows
};

// Compares a result with the oracle's. `excused(row)` returns true for further rows to skip, for
// example the rows of reached_rows(); row (b, h, i) has the number (b H + h) Sq + i. Throws
// Error{kInvalidArgument} if the reference has another shape, or the result lacks an output of the
// problem.
ANNULUS_EXPORT Comparison compare(const Problem& problem, const Reference& expected,
                                  const HostResult& result,
                                  const std::function<bool(std::int64_t row)>& excused = {});

// Marks the rows that a NaN or an infinity in an operand may reach. If it is in a query, it stays
// in its row. If it is in a key or a value, it reaches every row of the tile rows that read its
// tile, even rows that do not see it, because a matrix instruction multiplies masked elements by
// zero. Keys before the first and after the last key that any row of the problem sees, for example
// the unused rest of a static cache, are not read and reach no row. Returns [B H Sq], 1 for a row
// that may be reached, or an empty vector if all operands are finite. `tile_rows` and
// `tile_columns` are the tile sizes of the plan (PlanInfo). A carried state is ignored: it reaches
// only its own row, which the reference marks as tainted. Throws the errors of reference().
ANNULUS_EXPORT std::vector<std::uint8_t> reached_rows(const Problem& problem,
                                                      const HostInputs& inputs,
                                                      std::int64_t tile_rows,
                                                      std::int64_t tile_columns);

}  // namespace annulus::inline v0

#endif  // ANNULUS_ORACLE_H_
