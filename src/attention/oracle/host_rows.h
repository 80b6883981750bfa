#ifndef ANNULUS_ATTENTION_ORACLE_HOST_ROWS_H_
#define ANNULUS_ATTENTION_ORACLE_HOST_ROWS_H_

// Reads operands in host memory for the oracle.

#include <cstddef>
#include <cstdint>
#include <limits>

#include "annulus/oracle.h"

namespace annulus::attention {

// One (batch, head) of an operand: its elements and scales, and their conversion to numbers.
struct HostRows {
  const std::byte* data = nullptr;  // the address of row 0
  std::int64_t row_stride = 0;      // in elements
  Dtype dtype = Dtype::kBfloat16;
  const float* scales = nullptr;  // null: 1
  std::int64_t scale_block = 0;   // rows that share a scale; 0: all rows

  // The scale of a row; NaN if it is a scale that Operands does not allow.
  double scale(std::int64_t row) const {
    if (scales == nullptr) return 1;
    const auto scale = static_cast<double>(scales[scale_block == 0 ? 0 : row / scale_block]);
    return scale >= 0 && scale <= 0x1p125 ? scale : std::numeric_limits<double>::quiet_NaN();
  }
  float element(std::int64_t row, std::int64_t column) const;  // without the scale
};
HostRows q_rows(const Problem& problem, const HostInputs& inputs, std::int64_t batch,
                std::int64_t head);
HostRows k_rows(const Problem& problem, const HostInputs& inputs, std::int64_t batch,
                std::int64_t kv_head);
HostRows v_rows(const Problem& problem, const HostInputs& inputs, std::int64_t batch,
                std::int64_t kv_head);

// Throws Error{kInvalidArgument} if an input that the problem reads is missing. Requires:
// validate(problem) passes.
void check_inputs(const Problem& problem, const HostInputs& inputs);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_ORACLE_HOST_ROWS_H_
