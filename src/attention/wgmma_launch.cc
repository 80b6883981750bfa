#include "attention/wgmma_launch.h"

#include <algorithm>
#include <cstring>

#include "device/tensor_map.h"

namespace annulus::attention {
namespace {

constexpr std::int64_t kElementBytes = 2;
// What K and V of the heads that are worked on together may take of L2: 32 MB, of the 50 MB of an
// H100 and leaving room for Q and O.
constexpr std::int64_t kSetBytes = std::int64_t{32} << 20;

kernels::TensorMap encode(const device::Context& context, const device::BoxedTensor& tensor) {
  const abi::CUtensorMap map = device::encode_tensor_map(context, tensor);
  kernels::TensorMap copy;
  static_assert(sizeof copy == sizeof map);
  std::memcpy(&copy, &map, sizeof map);
  return copy;
}

device::BoxedTensor boxed(const void* data, const Strides& strides, const BatchRange& range,
                          std::int64_t rows, std::int64_t heads, std::int64_t columns,
                          std::int64_t box_rows) {
  return {.data = static_cast<const std::byte*>(data) +
                  range.first_batch * strides.batch * kElementBytes,
          .columns = columns,
          .rows = rows,
          .heads = heads,
          .batches = range.batches,
          .row_stride = strides.row,
          .head_stride = strides.head,
          .batch_stride = strides.batch,
          .box_rows = static_cast<std::uint32_t>(box_rows)};
}

}  // namespace

kernels::WorkParams work_params(const KernelConfig& config, const Problem& problem,
                                std::int64_t batches) {
  const std::int64_t row_tiles = (problem.seq_q + config.tile_rows - 1) / config.tile_rows;
  const std::int64_t head_groups = problem.heads / config.heads;
  const std::int64_t groups = head_groups * batches;
  const std::int64_t kv_bytes =
      std::max<std::int64_t>(1, problem.seq_k) * (problem.dim_qk + problem.dim_v) * kElementBytes;
  // Groups of heads that share one head of K and V count it once.
  const std::int64_t groups_per_kv = std::max<std::int64_t>(1, head_groups / problem.kv_heads);
  const std::int64_t set =
      std::clamp<std::int64_t>(kSetBytes / kv_bytes, 1, groups) * groups_per_kv;
  return {.count = static_cast<int>(row_tiles * groups),
          .groups = static_cast<int>(groups),
          .set = static_cast<int>(std::min(set, groups)),
          .head_groups = static_cast<int>(head_groups)};
}

kernels::TensorMaps tensor_maps(const device::Context& context, const KernelConfig& config,
                                const Problem& problem, const Operands& operands,
                                const BatchRange& range) {
  constexpr std::int64_t kQueryRows = 64;  // of a warpgroup
  kernels::TensorMaps maps{};
  maps.q = encode(context, boxed(operands.q, operands.q_strides, range, problem.seq_q,
                                 problem.heads, problem.dim_qk, kQueryRows));
  maps.k = encode(context, boxed(operands.k, operands.k_strides, range, problem.seq_k,
                                 problem.kv_heads, problem.dim_qk, config.tile_columns));
  maps.v = encode(context, boxed(operands.v, operands.v_strides, range, problem.seq_k,
                                 problem.kv_heads, problem.dim_v, config.tile_columns));
  if (operands.o != nullptr) {
    maps.o = encode(context, boxed(operands.o, operands.o_strides, range, problem.seq_q,
                                   problem.heads, problem.dim_v, kQueryRows));
  }
  return maps;
}

}  // namespace annulus::attention
