#include "attention/kernels/wgmma/tensor_maps.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/core.h>

#include "device/tensor_map.h"

namespace annulus::attention {
namespace {

kernels::TensorMap encode(const device::Context& context, const device::BoxedTensor& tensor) {
  const abi::CUtensorMap map = device::encode_tensor_map(context, tensor);
  kernels::TensorMap copy;
  static_assert(sizeof copy == sizeof map);
  std::memcpy(&copy, &map, sizeof map);
  return copy;
}

device::BoxedTensor boxed(const void* data, const Strides& strides, const BatchRange& range,
                          const pattern::Interval& rows, std::int64_t heads, std::int64_t columns,
                          std::int64_t box_rows, Dtype dtype) {
  const auto bytes = static_cast<std::int64_t>(size_in_bytes(dtype));
  const std::int64_t first = range.first_batch * strides.batch + rows.begin * strides.row;
  return {.data = static_cast<const std::byte*>(data) + first * bytes,
          .element_bytes = bytes,
          .columns = columns,
          .rows = rows.size(),
          .heads = heads,
          .batches = range.batches,
          .row_stride = strides.row,
          .head_stride = strides.head,
          .batch_stride = strides.batch,
          .box_rows = static_cast<std::uint32_t>(box_rows)};
}

}  // namespace

// Strides of a tensor map are positive and below 2^40 bytes. The other rules, 16-byte addresses and
// strides, hold for all operands, and validate() checks them.
std::optional<std::string> why_no_tensor_maps(const Problem& problem,
                                              const OperandStrides& strides) {
  if (problem.batch == 0 || problem.seq_q == 0) return std::nullopt;  // nothing is launched
  // Strides of tensor maps are below 2^40 bytes. For O, whose elements have 16 bits, that is 2^39
  // elements. 8-bit operands have the same bound.
  constexpr std::int64_t kMaxElements = (std::int64_t{1} << 40) / 2;
  struct Axis {
    const char* tensor;
    const char* name;
    std::int64_t extent;
    std::int64_t stride;
  };
  const auto axes_of = [&](const char* tensor, const Strides& of, std::int64_t rows,
                           std::int64_t heads) {
    return std::array{Axis{tensor, "batch", problem.batch, of.batch},
                      Axis{tensor, "head", heads, of.head}, Axis{tensor, "row", rows, of.row}};
  };
  const std::array tensors = {axes_of("Q", strides.q, problem.seq_q, problem.heads),
                              axes_of("K", strides.k, problem.seq_k, problem.kv_heads),
                              axes_of("V", strides.v, problem.seq_k, problem.kv_heads),
                              axes_of("O", strides.o, problem.seq_q, problem.heads)};
  for (const auto& axes : tensors) {
    for (const Axis& axis : axes) {
      // A tensor that is not read or written, and an axis of one entry, may have any stride.
      const bool keys = *axis.tensor == 'K' || *axis.tensor == 'V';
      if (keys ? problem.seq_k == 0 : *axis.tensor == 'O' && problem.carry_out) continue;
      if (axis.extent <= 1 || (axis.stride > 0 && axis.stride < kMaxElements)) continue;
      return fmt::format(
          "the {} stride of {} is {} elements, and those of tensor maps lie above 0 "
          "and below 2^39",
          axis.name, axis.tensor, axis.stride);
    }
  }
  return std::nullopt;
}

kernels::TensorMaps tensor_maps(const device::Context& context, const WgmmaConfig& config,
                                const Problem& problem, const Operands& operands,
                                const BatchRange& range, const pattern::Interval& keys) {
  constexpr std::int64_t kQueryRows = 64;  // rows of Q of a warpgroup
  // Each CTA of a cluster copies one of a step's tiles, or half of the tile if a step has only one.
  // produce() in templates/kernels/wgmma/producer.cuh has the same sizes (kBoxRows).
  const std::int64_t key_rows = config.tile_columns / std::max(1, config.cluster / config.blocks);
  kernels::TensorMaps maps{};
  maps.q = encode(context, boxed(operands.q, operands.q_strides, range, {0, problem.seq_q},
                                 problem.heads, problem.dim_qk, kQueryRows, problem.dtype));
  if (!keys.empty()) {  // otherwise nothing is copied, and there may be no memory to copy from
    maps.k = encode(context, boxed(operands.k, operands.k_strides, range, keys, problem.kv_heads,
                                   problem.dim_qk, key_rows, problem.dtype));
    device::BoxedTensor v = boxed(operands.v, operands.v_strides, range, keys, problem.kv_heads,
                                  problem.dim_v, key_rows, problem.dtype);
    v.box_row_bytes = value_row_bytes(problem.dim_v, v.element_bytes);
    maps.v = encode(context, v);
  }
  if (operands.o != nullptr) {
    maps.o =
        encode(context, boxed(operands.o, operands.o_strides, range, {0, problem.seq_q},
                              problem.heads, problem.dim_v, kQueryRows, problem.output_dtype()));
  }
  return maps;
}

}  // namespace annulus::attention
