#include "attention/oracle/host_rows.h"

#include <cstring>

#include "attention/problem/operands.h"
#include "base/fail.h"
#include "base/half.h"
#include "base/math.h"

namespace annulus::attention {
namespace {

HostRows rows_of(const Problem& problem, const void* data, const Strides& strides,
                 std::int64_t batch, std::int64_t head, const float* scales, std::int64_t block,
                 std::int64_t rows, std::int64_t heads) {
  const std::int64_t blocks = block == 0 ? 1 : base::ceil_div(rows, block);
  const std::int64_t first = batch * strides.batch + head * strides.head;
  const auto bytes = static_cast<std::int64_t>(size_in_bytes(problem.dtype));
  return {data == nullptr ? nullptr : static_cast<const std::byte*>(data) + first * bytes,
          strides.row, problem.dtype,
          scales == nullptr ? nullptr : scales + (batch * heads + head) * blocks, block};
}

}  // namespace

float HostRows::element(std::int64_t row, std::int64_t column) const {
  const std::int64_t index = row * row_stride + column;
  if (dtype == Dtype::kFloat8E4M3) {
    return base::e4m3_to_float(std::to_integer<std::uint8_t>(data[index]));
  }
  std::uint16_t bits = 0;
  std::memcpy(&bits, data + 2 * index, 2);
  return base::to_float(dtype, bits);
}

HostRows q_rows(const Problem& problem, const HostInputs& inputs, std::int64_t batch,
                std::int64_t head) {
  return rows_of(problem, inputs.q, inputs.q_strides, batch, head, inputs.scale_q,
                 problem.scale_blocks.q, problem.seq_q, problem.heads);
}
HostRows k_rows(const Problem& problem, const HostInputs& inputs, std::int64_t batch,
                std::int64_t kv_head) {
  return rows_of(problem, inputs.k, inputs.k_strides, batch, kv_head, inputs.scale_k,
                 problem.scale_blocks.k, problem.seq_k, problem.kv_heads);
}
HostRows v_rows(const Problem& problem, const HostInputs& inputs, std::int64_t batch,
                std::int64_t kv_head) {
  return rows_of(problem, inputs.v, inputs.v_strides, batch, kv_head, inputs.scale_v,
                 problem.scale_blocks.v, problem.seq_k, problem.kv_heads);
}

// Only the tensors that the problem reads have to be given: none without query rows, and not K and
// V without keys. Null scales stand for 1.
void check_inputs(const Problem& problem, const HostInputs& inputs) {
  const std::int64_t query_rows = problem.batch * problem.heads * problem.seq_q;
  const auto need = [](const char* name, const void* data, std::int64_t elements) {
    if (data != nullptr || elements == 0) return;
    base::fail(ErrorCode::kInvalidArgument, "{} of the oracle is null, but has {} rows to be read",
               name, elements);
  };
  const std::int64_t key_rows = query_rows == 0 ? 0 : problem.batch * problem.seq_k;
  need("Q", inputs.q, query_rows);
  need("K", inputs.k, key_rows);
  need("V", inputs.v, key_rows);
  if (query_rows > 0) {
    check_rows_given(problem, {.q = inputs.q_strides,
                               .k = inputs.k_strides,
                               .v = inputs.v_strides,
                               .o = {},
                               .broadcast_rows = inputs.broadcast_rows});
  }
  if (!problem.carry_in || query_rows == 0) return;
  const HostState* state = inputs.state_in;
  if (state == nullptr) {
    base::fail(ErrorCode::kInvalidArgument,
               "the problem carries a state in, but the inputs have none; set state_in");
  }
  check_host_state("that the oracle carries in", *state, query_rows, problem.dim_v);
}

}  // namespace annulus::attention
