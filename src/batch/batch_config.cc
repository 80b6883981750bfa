#include "batch/batch_config.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <numeric>

#include "annulus/error.h"
#include "attention/kernels/wgmma/config.h"
#include "base/fail.h"
#include "base/math.h"
#include "params/batch_map_params.h"

namespace annulus::batch {
namespace {

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
constexpr BatchConfig chunk_wgmma(int columns, int stages) {
  return {&kChunkWgmmaKernel, 128, columns, 8, stages, false, 1};
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
    {{64, 64}, chunk_wgmma(128, 3)},
    {{96, 96}, chunk_wgmma(128, 2)},
    {{128, 128}, chunk_wgmma(128, 3)},
    {{192, 128}, chunk_wgmma(128, 2)},
    {{192, 192}, chunk_wgmma(96, 2)},
    {{256, 256}, chunk_wgmma(64, 2)},
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

// Q, and the buffers of K and V.
std::int64_t chunk_bytes(const BatchConfig& config, const attention::Dims& dims) {
  return config.tile_rows * dims.qk * kElementBytes + config.stages * stage_bytes(config, dims);
}

// What chunk_bytes() counts, and m and l of each warp: the warps of decode_forward have the same
// rows and take keys of their own.
std::int64_t decode_bytes(const BatchConfig& config, const attention::Dims& dims) {
  return chunk_bytes(config, dims) +
         config.warps * kernels::kPackedRows * 2 * std::int64_t{sizeof(float)};
}

// ChunkLayout in templates/kernels/batch/chunk_layout.cuh is the same on the device.
std::int64_t chunk_wgmma_bytes(const BatchConfig& config, const attention::Dims& dims) {
  constexpr std::int64_t kPanelColumns = 64;
  constexpr std::int64_t kBarrierBytes = 8, kStepBytes = 32, kUnused = 16;
  constexpr std::int64_t kWorkBytes = sizeof(kernels::ChunkWork);
  const attention::Dims whole = {base::round_up<std::int64_t>(dims.qk, kPanelColumns),
                                 base::round_up<std::int64_t>(dims.v, kPanelColumns)};
  return chunk_bytes(config, whole) + 2 * kBarrierBytes +
         config.stages * (4 * kBarrierBytes + kStepBytes) + 2 * kWorkBytes + kUnused;
}

std::vector<jit::Constant> query_constants(const BatchConfig& config, const BatchFeatures&) {
  return {jit::Constant::boolean("kQueryInRegisters", config.query_in_registers)};
}

std::vector<jit::Constant> chunk_wgmma_constants(const BatchConfig& config,
                                                 const BatchFeatures& features) {
  return {jit::Constant::integer("kUnit", unit_keys(config, features.pages))};
}

}  // namespace

constinit const BatchKernel kDecodeKernel = {.name = "decode",
                                             .entry = "decode_forward",
                                             .source = "kernels/batch/decode_forward.cu",
                                             .takes_parts = true,
                                             .takes_lists = true,
                                             .by_maps = false,
                                             .shared_bytes = decode_bytes,
                                             .constants = query_constants};
constinit const BatchKernel kChunkKernel = {.name = "chunk",
                                            .entry = "chunk_forward",
                                            .source = "kernels/batch/chunk_forward.cu",
                                            .takes_parts = false,
                                            .takes_lists = true,
                                            .by_maps = false,
                                            .shared_bytes = chunk_bytes,
                                            .constants = query_constants};
constinit const BatchKernel kChunkWgmmaKernel = {.name = "chunk_wgmma",
                                                 .entry = "chunk_wgmma_forward",
                                                 .source = "kernels/batch/chunk_wgmma_forward.cu",
                                                 .takes_parts = false,
                                                 .takes_lists = false,
                                                 .by_maps = true,
                                                 .shared_bytes = chunk_wgmma_bytes,
                                                 .constants = chunk_wgmma_constants};

std::string to_string(const BatchConfig& config) {
  std::string text = fmt::format("{} m{} n{} w{} s{}", config.kernel->name, config.tile_rows,
                                 config.tile_columns, config.warps, config.stages);
  if (config.query_in_registers) text += " q";
  if (config.resident > 1) text += fmt::format(" x{}", config.resident);
  return text;
}

std::int64_t shared_bytes(const BatchConfig& config, const attention::Dims& dims) {
  return config.kernel->shared_bytes(config, dims);
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
  if (config.kernel->by_maps && limits.arch != jit::Arch{90, 'a'}) {
    return fmt::format("{} has no products of warpgroups; they need sm_90a",
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

BatchConfig choose_config(std::span<const BatchKernel* const> kernels, const attention::Dims& dims,
                          const attention::DeviceLimits& limits) {
  std::string reason = "there is none for these head dims";
  for (const BatchKernel* kernel : kernels) {
    for (const ShippedBatchConfig& shipped : kShipped) {
      const bool asked =
          shipped.config.kernel == kernel && shipped.dims.qk == dims.qk && shipped.dims.v == dims.v;
      if (!asked) continue;
      auto why = why_not(shipped.config, dims, limits);
      if (!why) return shipped.config;
      reason = std::move(*why);
    }
  }
  base::fail(ErrorCode::kUnsupported, "no {} kernel for batches of head dims {}/{} on {}: {}",
             kernels.back()->name, dims.qk, dims.v, jit::to_string(limits.arch), reason);
}

int unit_keys(const BatchConfig& config, kernels::Pages pages) {
  if (pages == kernels::Pages::kNone) return config.tile_columns;
  const int together = std::gcd(static_cast<int>(pages), config.tile_columns);
  return together >= kernels::kPartRows ? together : 1;
}

jit::KernelSpec rows_spec(const BatchConfig& config, const BatchFeatures& features,
                          jit::Arch arch) {
  using jit::Constant;
  std::vector<Constant> own = {Constant::integer("kWarps", config.warps),
                               Constant::integer("kResident", config.resident),
                               Constant::integer("kTileRows", config.tile_rows),
                               Constant::integer("kTileColumns", config.tile_columns),
                               Constant::integer("kRuns", features.runs),
                               Constant::integer("kPages", static_cast<int>(features.pages)),
                               Constant::boolean("kListed", features.listed),
                               Constant::boolean("kRowLimits", features.row_limits),
                               Constant::boolean("kInterleaved", features.interleaved)};
  std::ranges::move(config.kernel->constants(config, features), std::back_inserter(own));
  jit::KernelSpec spec = attention::forward_spec(config.kernel->entry, config.kernel->source,
                                                 config.stages, own, features.attention, arch);
  spec.config = to_string(config);
  if (config.kernel->by_maps) {
    spec.defines =
        attention::product_names(features.attention.dtype, config.tile_columns,
                                 base::round_up<std::int64_t>(features.attention.dims.v, 64));
  }
  return spec;
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

jit::KernelSpec prepare_spec(const BatchFeatures& features, jit::Arch arch) {
  jit::Struct shape;
  shape.name = "Shape";
  shape.constants = {jit::Constant::boolean("kInterleaved", features.interleaved)};
  return {.family = "prepare_batch",
          .arch = arch,
          .file = "kernels/batch/prepare_batch.cu",
          .entry = "prepare_batch",
          .structs = {std::move(shape)}};
}

jit::KernelSpec list_blocks_spec(jit::Arch arch) {
  return {.family = "list_blocks",
          .arch = arch,
          .file = "kernels/batch/list_blocks.cu",
          .entry = "list_blocks",
          .structs = {}};
}

}  // namespace annulus::batch
