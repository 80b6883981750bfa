#include "batch/batch_config.h"

#include <fmt/core.h>

#include "annulus/error.h"
#include "base/fail.h"

namespace annulus::batch {
namespace {

constexpr std::int64_t kElementBytes = 2;
// What the driver keeps of a multiprocessor's shared memory for each CTA (CUDA programming guide,
// "Shared Memory" of compute capability 8.x and 9.0).
constexpr std::int64_t kReservedBytes = 1024;

std::int64_t stage_bytes(const BatchConfig& config, const attention::Dims& dims) {
  return config.tile_columns * (dims.qk + dims.v) * kElementBytes;
}

// The deepest pipeline of each head dim comes first. Two CTAs to a multiprocessor fill the time in
// which one of them begins or ends a work.
constexpr BatchConfig decode(int columns, int stages, bool query_in_registers, int resident) {
  return {&kDecodeKernel, kernels::kPackedRows, columns, 4, stages, query_in_registers, resident};
}
constexpr BatchConfig chunk(int rows, int columns, int warps, int resident) {
  return {&kChunkKernel, rows, columns, warps, 2, false, resident};
}
// clang-format off
constexpr ShippedBatchConfig kShipped[] = {
    {{32, 32}, decode(128, 4, true, 2)},
    {{32, 32}, decode(128, 3, true, 1)},
    {{64, 64}, decode(128, 3, true, 2)},
    {{64, 64}, decode(128, 2, true, 2)},
    {{64, 64}, decode(64, 2, true, 2)},
    {{96, 96}, decode(64, 4, true, 2)},
    {{96, 96}, decode(64, 3, true, 2)},
    {{96, 96}, decode(64, 3, true, 1)},
    {{128, 128}, decode(64, 3, true, 2)},
    {{128, 128}, decode(64, 2, true, 2)},
    {{128, 128}, decode(64, 2, true, 1)},
    {{192, 128}, decode(64, 2, false, 2)},
    {{192, 128}, decode(64, 2, false, 1)},
    {{192, 192}, decode(64, 2, false, 2)},
    {{192, 192}, decode(64, 2, false, 1)},
    {{256, 256}, decode(64, 3, false, 1)},
    {{256, 256}, decode(64, 2, false, 1)},
    {{32, 32}, chunk(64, 64, 4, 2)},
    {{64, 64}, chunk(128, 64, 8, 1)},
    {{96, 96}, chunk(64, 64, 4, 2)},
    {{96, 96}, chunk(64, 64, 4, 1)},
    {{128, 128}, chunk(128, 64, 8, 1)},
    {{192, 128}, chunk(128, 32, 8, 1)},
    {{192, 128}, chunk(64, 32, 4, 1)},
    {{192, 192}, chunk(64, 32, 4, 2)},
    {{192, 192}, chunk(64, 32, 4, 1)},
    {{256, 256}, chunk(64, 32, 4, 2)},
    {{256, 256}, chunk(64, 32, 4, 1)},
};
// clang-format on

}  // namespace

constinit const BatchKernel kDecodeKernel = {.name = "decode",
                                             .entry = "decode_forward",
                                             .source = "kernels/batch/decode_forward.cu",
                                             .shares_rows = true,
                                             .takes_parts = true};
constinit const BatchKernel kChunkKernel = {.name = "chunk",
                                            .entry = "chunk_forward",
                                            .source = "kernels/batch/chunk_forward.cu",
                                            .shares_rows = false,
                                            .takes_parts = false};

std::string to_string(const BatchConfig& config) {
  std::string text = fmt::format("{} m{} n{} w{} s{}", config.kernel->name, config.tile_rows,
                                 config.tile_columns, config.warps, config.stages);
  if (config.query_in_registers) text += " q";
  if (config.resident > 1) text += fmt::format(" x{}", config.resident);
  return text;
}

// Q, the buffers of K and V, and where warps share rows m and l of each warp.
std::int64_t shared_bytes(const BatchConfig& config, const attention::Dims& dims) {
  const std::int64_t row_states =
      config.warps * kernels::kPackedRows * 2 * std::int64_t{sizeof(float)};
  return config.tile_rows * dims.qk * kElementBytes + config.stages * stage_bytes(config, dims) +
         (config.kernel->shares_rows ? row_states : 0);
}

std::int64_t bytes_under_way(const BatchConfig& config, const attention::Dims& dims) {
  return config.resident * (config.stages - 1) * stage_bytes(config, dims);
}

std::vector<ShippedBatchConfig> shipped_batch_configs() {
  return {std::begin(kShipped), std::end(kShipped)};
}

std::optional<std::string> why_not(const BatchConfig& config, const attention::Dims& dims,
                                   const attention::DeviceLimits& limits) {
  if (limits.arch.number < 80) {
    return fmt::format("{} has no cp.async and no bf16 tensor cores; batches need sm_80",
                       jit::to_string(limits.arch));
  }
  const std::int64_t bytes = shared_bytes(config, dims);
  const std::int64_t all = limits.shared_bytes_per_block + kReservedBytes;
  if (config.resident * (bytes + kReservedBytes) > all) {
    return fmt::format("{} CTAs of {} bytes of shared memory, but a multiprocessor has {}",
                       config.resident, bytes, all);
  }
  return std::nullopt;
}

BatchConfig choose_config(const BatchKernel& kernel, const attention::Dims& dims,
                          const attention::DeviceLimits& limits) {
  std::string reason = "there is none for these head dims";
  for (const ShippedBatchConfig& shipped : kShipped) {
    const bool asked =
        shipped.config.kernel == &kernel && shipped.dims.qk == dims.qk && shipped.dims.v == dims.v;
    if (!asked) continue;
    auto why = why_not(shipped.config, dims, limits);
    if (!why) return shipped.config;
    reason = std::move(*why);
  }
  base::fail(ErrorCode::kUnsupported, "no {} kernel for batches of head dims {}/{} on {}: {}",
             kernel.name, dims.qk, dims.v, jit::to_string(limits.arch), reason);
}

jit::KernelSpec rows_spec(const BatchConfig& config, const BatchFeatures& features,
                          jit::Arch arch) {
  using jit::Constant;
  const std::vector<Constant> own = {
      Constant::integer("kWarps", config.warps),
      Constant::integer("kResident", config.resident),
      Constant::integer("kTileRows", config.tile_rows),
      Constant::integer("kTileColumns", config.tile_columns),
      Constant::integer("kRuns", features.runs),
      Constant::integer("kPages", static_cast<int>(features.pages)),
      Constant::boolean("kListed", features.listed),
      Constant::boolean("kRowLimits", features.row_limits),
      Constant::boolean("kQueryInRegisters", config.query_in_registers)};
  return attention::forward_spec(config.kernel->entry, config.kernel->source, config.stages, own,
                                 features.attention, arch);
}

jit::KernelSpec combine_spec(const BatchFeatures& features, jit::Arch arch) {
  using jit::Constant;
  const attention::KernelFeatures& of = features.attention;
  jit::Struct shape;
  shape.name = "Shape";
  shape.constants = {
      Constant::type("Element", attention::element_of(of.dtype)),
      Constant::integer("kDimV", of.dims.v), Constant::boolean("kSinkLogit", of.sink_logit),
      Constant::boolean("kCarryIn", of.carry_in), Constant::boolean("kCarryOut", of.carry_out)};
  return {.family = "combine_parts",
          .arch = arch,
          .file = "kernels/batch/combine_parts.cu",
          .entry = "combine_parts",
          .structs = {std::move(shape)}};
}

jit::KernelSpec prepare_spec(jit::Arch arch) {
  return {.family = "prepare_batch",
          .arch = arch,
          .file = "kernels/batch/prepare_batch.cu",
          .entry = "prepare_batch",
          .structs = {}};
}

jit::KernelSpec list_blocks_spec(jit::Arch arch) {
  return {.family = "list_blocks",
          .arch = arch,
          .file = "kernels/batch/list_blocks.cu",
          .entry = "list_blocks",
          .structs = {}};
}

}  // namespace annulus::batch
