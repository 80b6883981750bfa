#include "batch/decode_config.h"

#include <fmt/core.h>

#include "annulus/error.h"
#include "base/fail.h"

namespace annulus::batch {
namespace {

constexpr std::int64_t kElementBytes = 2;
// What the driver keeps of a multiprocessor's shared memory for each CTA (CUDA programming guide,
// "Shared Memory" of compute capability 8.x and 9.0).
constexpr std::int64_t kReservedBytes = 1024;

std::int64_t stage_bytes(const DecodeConfig& config, const attention::Dims& dims) {
  return config.tile_columns() * (dims.qk + dims.v) * kElementBytes;
}

struct Row {
  attention::Dims dims;
  DecodeConfig config;
};

// Of each head dim the deepest pipeline first. Two CTAs to a multiprocessor fill the time in which
// one of them begins or ends a work.
constexpr Row kShipped[] = {
    {{32, 32}, {32, 4, true, 2}},
    {{32, 32}, {32, 3, true, 1}},    {{64, 64}, {32, 3, true, 2}},
    {{64, 64}, {32, 2, true, 2}},    {{64, 64}, {16, 2, true, 2}},
    {{96, 96}, {16, 4, true, 2}},    {{96, 96}, {16, 3, true, 2}},
    {{96, 96}, {16, 3, true, 1}},    {{128, 128}, {16, 3, true, 2}},
    {{128, 128}, {16, 2, true, 2}},  {{128, 128}, {16, 2, true, 1}},
    {{192, 128}, {16, 2, false, 2}}, {{192, 128}, {16, 2, false, 1}},
    {{192, 192}, {16, 2, false, 2}}, {{192, 192}, {16, 2, false, 1}},
    {{256, 256}, {16, 3, false, 1}}, {{256, 256}, {16, 2, false, 1}},
};

}  // namespace

std::string to_string(const DecodeConfig& config) {
  std::string text = fmt::format("decode k{} s{}", config.keys, config.stages);
  if (config.query_in_registers) text += " q";
  if (config.resident > 1) text += fmt::format(" x{}", config.resident);
  return text;
}

// Q, the buffers of all warps, and m and l of their rows: the layout of decode_forward.
std::int64_t shared_bytes(const DecodeConfig& config, const attention::Dims& dims) {
  return kernels::kPackedRows * dims.qk * kElementBytes +
         config.stages * stage_bytes(config, dims) +
         DecodeConfig::kWarps * kernels::kPackedRows * 2 * std::int64_t{sizeof(float)};
}

std::int64_t bytes_under_way(const DecodeConfig& config, const attention::Dims& dims) {
  return config.resident * (config.stages - 1) * stage_bytes(config, dims);
}

std::vector<DecodeConfig> configs_for(const attention::Dims& dims) {
  std::vector<DecodeConfig> configs;
  for (const Row& row : kShipped) {
    if (row.dims.qk == dims.qk && row.dims.v == dims.v) configs.push_back(row.config);
  }
  return configs;
}

std::optional<std::string> why_not(const DecodeConfig& config, const attention::Dims& dims,
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

DecodeConfig choose_config(const attention::Dims& dims, const attention::DeviceLimits& limits) {
  std::string reason = "there is none for these head dims";
  for (const DecodeConfig& config : configs_for(dims)) {
    auto why = why_not(config, dims, limits);
    if (!why) return config;
    reason = std::move(*why);
  }
  base::fail(ErrorCode::kUnsupported, "no kernel for batches of head dims {}/{} on {}: {}", dims.qk,
             dims.v, jit::to_string(limits.arch), reason);
}

jit::KernelSpec decode_spec(const DecodeConfig& config, const BatchFeatures& features,
                            jit::Arch arch) {
  using jit::Constant;
  const std::vector<Constant> own = {
      Constant::integer("kWarps", DecodeConfig::kWarps),
      Constant::integer("kKeys", config.keys),
      Constant::integer("kResident", config.resident),
      Constant::integer("kRuns", features.runs),
      Constant::integer("kPages", static_cast<int>(features.pages)),
      Constant::boolean("kQueryInRegisters", config.query_in_registers)};
  return attention::forward_spec("decode_forward", "kernels/batch/decode_forward.cu", config.stages,
                                 own, features.attention, arch);
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

}  // namespace annulus::batch
