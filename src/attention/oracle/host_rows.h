#ifndef ANNULUS_ATTENTION_ORACLE_HOST_ROWS_H_
#define ANNULUS_ATTENTION_ORACLE_HOST_ROWS_H_

// How the oracle reads operands in host memory.

#include <cstddef>
#include <cstdint>
#include <limits>

#include "annulus/oracle.h"

namespace annulus::attention {

// One (batch, head) of an operand: its elements and scales, and how they become numbers.
struct HostRows {
  const std::byte* data = nullptr;  // of row 0
  std::int64_t row_stride = 0;      // in elements
  Dtype dtype = Dtype::kBfloat16;
  const float* scales = nullptr;  // null: 1
  std::int64_t scale_block = 0;   // rows of a scale; 0: one for all

  // The scale of a row; NaN if it is not one that Operands allows.
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

// Throws Error{kInvalidArgument} if inputs lack what the problem reads. Requires:
// validate(problem) passes.
void check_inputs(const Problem& problem, const HostInputs& inputs);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_ORACLE_HOST_ROWS_H_
