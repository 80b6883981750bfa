#ifndef ANNULUS_ATTENTION_REFERENCE_H_
#define ANNULUS_ATTENTION_REFERENCE_H_

// The oracle: attention in float64 on the CPU, straight from the definition, one row at a time.
// It reads the same bits the kernel reads, asks the pattern about every single pair, and shares
// nothing with the planner or the kernels.

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "annulus/attention.h"

namespace annulus::base {
class ThreadPool;
}

namespace annulus::attention {

// Host copies of the operands, laid out as the device's. Elements are bits of the problem's dtype.
struct HostInputs {
  const void* q = nullptr;
  const void* k = nullptr;
  const void* v = nullptr;
  Strides q_strides;
  Strides k_strides;
  Strides v_strides;
  const HostState* state_in = nullptr;  // [B H Sq] rows, with carry_in
  const float* scale_q = nullptr;       // as in Operands
  const float* scale_k = nullptr;
  const float* scale_v = nullptr;
};

// One (batch, head) of an operand: its elements and scales, and what they mean.
struct HostRows {
  const std::byte* data = nullptr;  // of row 0
  std::int64_t row_stride = 0;      // in elements
  Dtype dtype = Dtype::kBfloat16;
  const float* scales = nullptr;  // null: 1
  std::int64_t scale_block = 0;   // rows of a scale; 0: one for all

  // NaN where it is none that Operands allows.
  double scale(std::int64_t row) const {
    if (scales == nullptr) return 1;
    const auto scale = static_cast<double>(scales[scale_block == 0 ? 0 : row / scale_block]);
    return scale >= 0 && scale <= 0x1p125 ? scale : std::numeric_limits<double>::quiet_NaN();
  }
  float element(std::int64_t row, std::int64_t column) const;  // without its scale
};
HostRows q_rows(const Problem& problem, const HostInputs& inputs, std::int64_t batch,
                std::int64_t head);
HostRows k_rows(const Problem& problem, const HostInputs& inputs, std::int64_t batch,
                std::int64_t kv_head);
HostRows v_rows(const Problem& problem, const HostInputs& inputs, std::int64_t batch,
                std::int64_t kv_head);

struct ReferenceOptions {
  // Above this many visible pairs only some rows are computed: the first and the last `tile_rows`
  // of every (batch, head) and `sampled_rows` more, drawn from `seed`.
  std::int64_t most_pairs = std::int64_t{1} << 31;
  std::int64_t tile_rows = 128;
  std::int64_t sampled_rows = 256;
  std::uint64_t seed = 0;
  // Where given, the number of visible pairs; else it is taken to be all of them.
  std::optional<double> visible_pairs;
  // Called now and then, from one thread at a time, with the share that is done.
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
  // [rows]: 1 where an operand, or its scale, that the row reads is not finite.
  std::vector<std::uint8_t> tainted;
  bool sampled() const { return static_cast<std::int64_t>(rows.size()) != batch * heads * seq_q; }
};

// Requires: validate(problem) passes. The pool's threads share the rows.
Reference reference(const Problem& problem, const HostInputs& inputs, base::ThreadPool& pool,
                    const ReferenceOptions& options = {});

// What a kernel wrote, in host memory: O and perhaps LSE, or the state it carried out.
struct HostResult {
  const std::uint16_t* o = nullptr;  // bits of the problem's output dtype
  Strides o_strides;
  const float* lse = nullptr;        // [B H Sq], in the problem's base
  const HostState* state = nullptr;  // instead of the others, with carry_out
};

struct Tolerance {
  double row = 0;        // largest relative L2 error of a row
  double frobenius = 0;  // largest relative Frobenius error of a (batch, head)
  double lse = 0;        // |difference| / max(1, |LSE|)
};
// The law's for Q, K and V of this dtype, see docs/architecture.md.
Tolerance tolerance(Dtype dtype);

// Relative errors are against the oracle's norm, or against the norm of a row of the dtype's
// smallest normal number where that is larger. Infinity stands for what no tolerance allows: a
// value that is not finite where the oracle's is, an empty row with O != 0 or LSE != -inf.
struct Comparison {
  double error_row_max = 0;
  double error_o = 0;
  double error_lse = 0;  // 0 where no LSE was written; of m + log2(l) with a carried state
  std::int64_t checked_rows = 0;
  std::int64_t tainted_rows = 0;  // not compared: an operand they read is not finite
  std::int64_t wrong_rows = 0;    // beyond the row or the LSE tolerance
  std::string first_wrong;        // where the first of them is and what it holds; empty: none
  bool within_law = false;
};

// `tainted(row)` may excuse further rows, (b H + h) Sq + i: those whose tiles hold such an operand.
Comparison compare(const Problem& problem, const Reference& oracle, const HostResult& result,
                   const std::function<bool(std::int64_t row)>& tainted = {});

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_REFERENCE_H_
