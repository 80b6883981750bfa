#include "batch/batch_maps.h"

#include <cstring>
#include <limits>

#include "base/fail.h"
#include "batch/step_operands.h"
#include "device/tensor_map.h"

namespace annulus::batch {
namespace {

constexpr std::int64_t kEndless = std::numeric_limits<std::int32_t>::max();

// A dimension of a tensor: the number of its entries, and the elements from one entry to the next.
struct Axis {
  const char* name;
  std::int64_t extent;
  std::int64_t stride;
};

// Strides of a tensor map are positive and below 2^40 bytes. A single entry's stride is not used.
void check_axis(const char* tensor, const Axis& axis) {
  constexpr std::int64_t kMost = (std::int64_t{1} << 40) / kElementBytes;
  if (axis.extent <= 1 || (axis.stride > 0 && axis.stride < kMost)) return;
  base::fail(ErrorCode::kUnsupported,
             "the {} stride of {} is {} elements; if requests have many queries, kernels of "
             "sm_90a copy with tensor maps, whose strides are above 0 and below 2^39",
             axis.name, tensor, axis.stride);
}

kernels::TensorMap encode(const device::Context& context, const device::BoxedTensor& tensor) {
  const abi::CUtensorMap map = device::encode_tensor_map(context, tensor);
  kernels::TensorMap copy;
  static_assert(sizeof copy == sizeof map);
  std::memcpy(&copy, &map, sizeof map);
  return copy;
}

// The maps of K or V: Hkv heads in pages. Without pages, they are in slabs, or in rows whose number
// is not bounded. If all entries of an axis share the same memory, its stride is 0 and the map has
// one entry.
kernels::KeyMaps key_maps(const device::Context& context, const BatchProblem& problem, int unit,
                          const char* name, const void* data, std::int64_t columns,
                          const BatchStrides& strides, std::int64_t pages) {
  const bool paged = problem.page_rows > 0;
  const auto axis = [&](const char* axis_name, std::int64_t extent, std::int64_t stride) {
    const Axis made = {axis_name, stride == 0 ? 1 : extent, stride};
    check_axis(name, made);
    return made;
  };
  const Axis row = axis("row", paged ? problem.page_rows : kEndless, strides.row);
  const Axis head = axis("head", problem.kv_heads, strides.head);
  const Axis page = axis("page", paged ? page_count(pages) : problem.most.requests, strides.page);
  const auto map = [&](int box_rows) {
    return encode(context, {.data = data,
                            .element_bytes = kElementBytes,
                            .columns = columns,
                            .rows = row.extent,
                            .heads = head.extent,
                            .batches = page.extent,
                            .row_stride = row.stride,
                            .head_stride = head.stride,
                            .batch_stride = page.stride,
                            .box_rows = static_cast<std::uint32_t>(box_rows)});
  };
  kernels::KeyMaps maps{};
  maps.row = map(1);
  if (unit > 1) maps.unit = map(unit);
  if (unit > kernels::kPartRows) maps.part = map(kernels::kPartRows);
  return maps;
}

}  // namespace

kernels::BatchMaps batch_maps(const device::Context& context, const BatchPlanData& plan,
                              const ClassPlan& of, const BatchOperands& operands) {
  const BatchProblem& problem = plan.problem;
  const std::int64_t group = problem.heads / problem.kv_heads;
  const Axis row = {"row", problem.most.rows, operands.q_strides.row};
  const Axis head = {"head", problem.heads, operands.q_strides.head};
  check_axis("Q", row);
  check_axis("Q", head);
  const Axis groups = {"head group", problem.kv_heads, head.stride * group};
  check_axis("Q", groups);
  kernels::BatchMaps maps{};
  maps.q = encode(context, {.data = operands.q,
                            .element_bytes = kElementBytes,
                            .columns = problem.dim_qk,
                            .rows = group,
                            .heads = groups.extent,
                            .batches = row.extent,
                            .row_stride = head.stride,
                            .head_stride = groups.stride,
                            .batch_stride = row.stride,
                            .box_rows = static_cast<std::uint32_t>(of.packing.tile_heads)});
  const int unit = unit_keys(of.config, plan.features.pages);
  maps.k = key_maps(context, problem, unit, "K", operands.k, problem.dim_qk, operands.k_strides,
                    operands.k_pages);
  maps.v = key_maps(context, problem, unit, "V", operands.v, problem.dim_v, operands.v_strides,
                    operands.v_pages);
  return maps;
}

}  // namespace annulus::batch
