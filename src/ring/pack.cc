#include "ring/pack.h"

#include <algorithm>
#include <cstddef>

#include "base/math.h"
#include "params/pack_params.h"

namespace annulus::ring {
namespace {

constexpr std::int64_t kMaxGridZ = 65535;
constexpr long long kElementBytes = 2;

kernels::PackTensor tensor(const void* from, const Strides& strides, std::byte* to,
                           std::int64_t dim) {
  return {.from = from,
          .to = to,
          .batch = strides.batch * kElementBytes,
          .head = strides.head * kElementBytes,
          .row = strides.row * kElementBytes,
          .pieces = static_cast<int>(dim * kElementBytes / 16),
          .padding = 0};
}

}  // namespace

jit::KernelSpec pack_spec(jit::Arch arch) {
  return {.family = "pack_rows",
          .arch = arch,
          .file = "kernels/ring/pack_rows.cu",
          .entry = "pack_rows",
          .structs = {}};
}

void pack(const device::Function& kernel, const Problem& problem, const Operands& operands,
          const PackedShard& shard, void* to, abi::CUstream stream) {
  auto* const base = static_cast<std::byte*>(to);
  kernels::PackParams params = {
      .tensors = {tensor(operands.k, operands.k_strides, base, problem.dim_qk),
                  tensor(operands.v, operands.v_strides, base + shard.value_offset, problem.dim_v)},
      .batch = static_cast<int>(problem.batch),
      .rows = static_cast<int>(problem.seq_k),
      .heads = static_cast<int>(problem.kv_heads),
      .padding = 0};
  const auto grid_x = static_cast<unsigned>(base::ceil_div(problem.seq_k, kernels::kPackRows));
  for (std::int64_t first = 0; first < problem.batch; first += kMaxGridZ) {
    const std::int64_t batches = std::min(kMaxGridZ, problem.batch - first);
    device::launch(kernel, {grid_x, 2, static_cast<unsigned>(batches)}, {kernels::kPackThreads}, 0,
                   stream, {&params});
    for (kernels::PackTensor& part : params.tensors) {
      const std::int64_t line = problem.seq_k * problem.kv_heads * part.pieces * 16;
      part.from = static_cast<const std::byte*>(part.from) + batches * part.batch;
      part.to = static_cast<std::byte*>(part.to) + batches * line;
    }
  }
}

}  // namespace annulus::ring
