#ifndef ANNULUS_ORACLE_H_
#define ANNULUS_ORACLE_H_

// The oracle: attention in float64 on the host, straight from its definition, and the comparison of
// an answer with it. It asks the pattern about every pair of a query and a key, one at a time, and
// shares nothing with the planner, the kernels or a device, so that an embedder can verify an
// answer of this library, or of another, without trusting either.
//
//   const annulus::Reference expected = annulus::reference(problem, inputs);
//   const annulus::Comparison made = annulus::compare(problem, expected, result);
//   if (!made.within_tolerance) complain(made.first_wrong);
//
// Letters as in annulus/problem.h. All memory here is the caller's host memory, which is read and
// never kept. All functions may be called from any thread.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "annulus/problem.h"

namespace annulus::inline v0 {

// Host copies of Q, K and V, laid out as on the device. The elements are bits of the problem's
// dtype: the oracle reads what the kernel reads, after any rounding to that dtype.
struct HostInputs {
  const void* q = nullptr;  // [B, Sq, H, Dqk] in the order of q_strides
  const void* k = nullptr;  // [B, Sk, Hkv, Dqk]
  const void* v = nullptr;  // [B, Sk, Hkv, Dv]
  Strides q_strides;
  Strides k_strides;
  Strides v_strides;
  const HostState* state_in = nullptr;  // B H Sq rows, with carry_in
  const float* scale_q = nullptr;       // scales of blocks of rows with e4m3, as in Operands
  const float* scale_k = nullptr;
  const float* scale_v = nullptr;
  bool broadcast_rows = false;  // as in Operands
};

struct ReferenceOptions {
  // Every row asks the pattern once for each of its Sk keys. Above this many questions, B H Sq Sk,
  // only some rows are computed: the first and the last `tile_rows` of every (batch, head) and
  // `sampled_rows` more, drawn from `seed`. One core answers some ten million questions in a
  // second, and fewer where many pairs are visible.
  std::int64_t max_pairs = std::int64_t{1} << 31;
  std::int64_t tile_rows = 128;
  std::int64_t sampled_rows = 256;
  std::uint64_t seed = 0;
  // How many threads share the rows; 0: one for each processor of this process. They end before the
  // call returns. The answer does not depend on their number.
  int threads = 0;
  // Called now and then, from one thread at a time, with the share of the rows that is done. A
  // WorkScope (annulus/types.h) bounds and cancels the call, which has no limit of its own.
  std::function<void(double)> progress;
};

// The answer for the rows that were computed.
struct Reference {
  std::int64_t batch = 0;
  std::int64_t heads = 0;
  std::int64_t seq_q = 0;
  std::int64_t dim_v = 0;
  std::vector<std::int64_t> rows;  // (b H + h) Sq + i, ascending
  std::vector<double> o;           // [rows, Dv]; 0 in empty rows
  std::vector<double> m;           // [rows], base 2; -inf in empty rows
  std::vector<double> l;           // [rows]; 0 in empty rows
  // [rows]: 1 where the row reads an operand, or a scale, that is not finite.
  std::vector<std::uint8_t> tainted;
  bool sampled() const { return static_cast<std::int64_t>(rows.size()) != batch * heads * seq_q; }
};

// Throws as validate(problem) does, and Error{kInvalidArgument} where inputs lack a tensor or a
// state that the problem reads, or an option is out of range.
ANNULUS_EXPORT Reference reference(const Problem& problem, const HostInputs& inputs,
                                   const ReferenceOptions& options = {});

// The results of a kernel, copied to host memory: O and perhaps LSE, or the state that it carried
// out.
struct HostResult {
  const std::uint16_t* o = nullptr;  // [B, Sq, H, Dv] in the order of o_strides, bits of the
  Strides o_strides;                 // problem's output dtype
  const float* lse = nullptr;        // [B, H, Sq] contiguous, in the problem's base; null: none
  const HostState* state = nullptr;  // instead of the others, with carry_out
};

// The largest errors that an answer may have.
struct Tolerance {
  double row = 0;        // relative L2 error of a row
  double frobenius = 0;  // relative Frobenius error of a (batch, head)
  double lse = 0;        // |difference| / max(1, |LSE|)
};
// The tolerance for Q, K and V of this dtype; docs/architecture.md explains it.
ANNULUS_EXPORT Tolerance tolerance(Dtype dtype);

// Relative errors are against the oracle's norm, or against the norm of a row of the dtype's
// smallest normal number where that is larger. An error up to 2^-122 sqrt(dim_v) (1.9e-37 in each
// element) counts as none: kernels compute probabilities in fp32, where those below 2^-126 beside
// a large sink logit are 0. Infinity marks an error that no tolerance allows: a value that is not
// finite where the oracle's is finite, or an empty row with O != 0 or LSE != -inf.
struct Comparison {
  double error_row_max = 0;
  double error_o = 0;
  // 0 where no LSE was written; the error of m + log2(l) with a carried state.
  double error_lse = 0;
  std::int64_t checked_rows = 0;
  std::int64_t tainted_rows = 0;  // not compared: an operand they read is not finite
  std::int64_t wrong_rows = 0;    // beyond the tolerance of a row or of an LSE
  std::string first_wrong;        // position and values of the first wrong row; empty: none
  bool within_tolerance = false;  // also true where no row was compared: look at checked_rows
};

// Compares an answer with the oracle's. `excused(row)` may leave out further rows, numbered (b H +
// h) Sq + i, for example those that reached_rows() marks. Throws Error{kInvalidArgument} where the
// reference is of a problem of another shape, or the result lacks what the problem writes.
ANNULUS_EXPORT Comparison compare(const Problem& problem, const Reference& expected,
                                  const HostResult& result,
                                  const std::function<bool(std::int64_t row)>& excused = {});

// Which rows a NaN or an infinity in an operand may reach. One in a query stays in its own row. One
// in a key or a value reaches every row of the tile rows that read its tile, whether a row sees it
// or not, because a matrix instruction multiplies masked elements by zero. Keys before the first
// and after the last that any row of the problem sees are not read and reach nothing, as the unused
// rest of a static cache. No other row may change. Returns [B H Sq], 1 where the row may be
// reached, or an empty vector where all operands are finite. `tile_rows` and `tile_columns` are
// the tile sizes of the plan (PlanInfo). A carried state is ignored: it reaches only its own row,
// which the reference marks as tainted. Throws as reference() does.
ANNULUS_EXPORT std::vector<std::uint8_t> reached_rows(const Problem& problem,
                                                      const HostInputs& inputs,
                                                      std::int64_t tile_rows,
                                                      std::int64_t tile_columns);

}  // namespace annulus::inline v0

#endif  // ANNULUS_ORACLE_H_
