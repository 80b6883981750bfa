#include "batch/batch_config.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <numeric>

#include "attention/kernels/wgmma/config.h"
#include "base/math.h"
#include "batch/batch_space.h"
#include "params/batch_map_params.h"

namespace annulus::batch {
namespace {

using attention::ConfigFamily;

// The deepest pipeline of each head dim comes first. With two CTAs to a multiprocessor, one can
// compute while the other begins or ends a work.
constexpr KernelConfig decode(int columns, int stages, bool query_in_registers, int resident) {
  return BatchConfig{&kDecodeKernel, kernels::kPackedRows, columns, 4,
                     stages,         query_in_registers,   resident};
}
constexpr ShippedBatchConfig kDecodes[] = {
    {{32, 32}, decode(128, 4, true, 2)},   {{32, 32}, decode(128, 3, true, 1)},
    {{64, 64}, decode(128, 3, true, 2)},   {{64, 64}, decode(128, 2, true, 2)},
    {{64, 64}, decode(64, 2, true, 2)},    {{96, 96}, decode(64, 4, true, 2)},
    {{96, 96}, decode(64, 3, true, 2)},    {{96, 96}, decode(64, 3, true, 1)},
    {{128, 128}, decode(64, 3, true, 2)},  {{128, 128}, decode(64, 2, true, 2)},
    {{128, 128}, decode(64, 2, true, 1)},  {{192, 128}, decode(64, 2, false, 2)},
    {{192, 128}, decode(64, 2, false, 1)}, {{192, 192}, decode(64, 2, false, 2)},
    {{192, 192}, decode(64, 2, false, 1)}, {{256, 256}, decode(64, 3, false, 1)},
    {{256, 256}, decode(64, 2, false, 1)},
};

constexpr KernelConfig chunk_wgmma(int columns, int stages) {
  return BatchConfig{&kChunkWgmmaKernel, 128, columns, 8, stages};
}
constexpr ShippedBatchConfig kChunkWgmmas[] = {
    {{64, 64}, chunk_wgmma(128, 3)},   {{96, 96}, chunk_wgmma(128, 2)},
    {{128, 128}, chunk_wgmma(128, 3)}, {{192, 128}, chunk_wgmma(128, 2)},
    {{192, 192}, chunk_wgmma(96, 2)},  {{256, 256}, chunk_wgmma(64, 2)},
};

constexpr KernelConfig chunk(int rows, int columns, int warps, int resident) {
  return BatchConfig{&kChunkKernel, rows, columns, warps, 2, false, resident};
}
constexpr ShippedBatchConfig kChunks[] = {
    {{32, 32}, chunk(64, 64, 4, 2)},    {{64, 64}, chunk(128, 64, 8, 1)},
    {{96, 96}, chunk(64, 64, 4, 2)},    {{96, 96}, chunk(64, 64, 4, 1)},
    {{128, 128}, chunk(128, 64, 8, 1)}, {{192, 128}, chunk(128, 32, 8, 1)},
    {{192, 128}, chunk(64, 32, 4, 1)},  {{192, 192}, chunk(64, 32, 4, 2)},
    {{192, 192}, chunk(64, 32, 4, 1)},  {{256, 256}, chunk(64, 32, 4, 2)},
    {{256, 256}, chunk(64, 32, 4, 1)},
};

std::vector<jit::Constant> query_constants(const KernelConfig& config, const BatchFeatures&) {
  return {jit::Constant::boolean("kQueryInRegisters", batch_config(config).query_in_registers)};
}

std::vector<jit::Constant> chunk_wgmma_constants(const KernelConfig& config,
                                                 const BatchFeatures& features) {
  return {jit::Constant::integer("kUnit", unit_keys(config, features.pages))};
}

constexpr const BatchKernel* kKernels[] = {&kDecodeKernel, &kChunkWgmmaKernel, &kChunkKernel};

}  // namespace

constinit const BatchKernel kDecodeKernel = {
    ConfigFamily{.name = "decode",
                 .revision = 2,
                 .instructions = "cp.async and mma.sync run on",
                 .element_bytes = kElementBytes,
                 .fields = kBatchFields,
                 .why_illegal = decode_why_illegal,
                 .why_spills = decode_why_spills,
                 .enumerate = decode_enumerate,
                 .cta = batch_cta,
                 .footprint = decode_footprint},
    RequestKernel{.requests = RequestClass::kFewQueries,
                  .entry = "decode_forward",
                  .source = "kernels/batch/decode_forward.cu",
                  .takes_parts = true,
                  .takes_lists = true,
                  .by_maps = false,
                  .static_bytes = 0,
                  .shipped = kDecodes,
                  .constants = query_constants},
};
constinit const BatchKernel kChunkWgmmaKernel = {
    ConfigFamily{.name = "chunk_wgmma",
                 .revision = 2,
                 .instructions = "tensor maps and warpgroup products of",
                 .element_bytes = kElementBytes,
                 .fields = kBatchFields,
                 .why_illegal = chunk_wgmma_why_illegal,
                 .why_spills = chunk_wgmma_why_spills,
                 .enumerate = chunk_wgmma_enumerate,
                 .cta = batch_cta,
                 .footprint = chunk_wgmma_footprint},
    RequestKernel{.requests = RequestClass::kManyQueries,
                  .entry = "chunk_wgmma_forward",
                  .source = "kernels/batch/chunk_wgmma_forward.cu",
                  .takes_parts = false,
                  .takes_lists = false,
                  .by_maps = true,
                  .static_bytes = 0,
                  .shipped = kChunkWgmmas,
                  .constants = chunk_wgmma_constants},
};
constinit const BatchKernel kChunkKernel = {
    ConfigFamily{.name = "chunk",
                 .revision = 2,
                 .instructions = "cp.async and mma.sync run on",
                 .element_bytes = kElementBytes,
                 .fields = kBatchFields,
                 .why_illegal = chunk_why_illegal,
                 .why_spills = chunk_why_spills,
                 .enumerate = chunk_enumerate,
                 .cta = batch_cta,
                 .footprint = chunk_footprint},
    RequestKernel{.requests = RequestClass::kManyQueries,
                  .entry = "chunk_forward",
                  .source = "kernels/batch/chunk_forward.cu",
                  .takes_parts = false,
                  .takes_lists = true,
                  .by_maps = false,
                  .static_bytes = 128,
                  .shipped = kChunks,
                  .constants = query_constants},
};

std::span<const BatchKernel* const> batch_kernels() { return kKernels; }

const BatchKernel& kernel_of(const KernelConfig& config) {
  return static_cast<const BatchKernel&>(*config.family);
}

BatchConfig batch_config(const KernelConfig& config) {
  return {&kernel_of(config), config.tile_rows,   config.tile_columns, config.own[0],
          config.own[1],      config.own[2] != 0, config.own[3]};
}

std::int64_t bytes_under_way(const KernelConfig& any, const attention::Dims& dims) {
  const BatchConfig config = batch_config(any);
  return config.resident * (config.stages - 1) * config.tile_columns * (dims.qk + dims.v) *
         kElementBytes;
}

std::vector<ShippedBatchConfig> shipped_batch_configs() {
  std::vector<ShippedBatchConfig> all;
  for (const BatchKernel* kernel : kKernels) {
    all.insert(all.end(), kernel->shipped.begin(), kernel->shipped.end());
  }
  return all;
}

int unit_keys(const KernelConfig& config, kernels::Pages pages) {
  if (pages == kernels::Pages::kNone) return config.tile_columns;
  const int together = std::gcd(static_cast<int>(pages), config.tile_columns);
  return together >= kernels::kPartRows ? together : 1;
}

jit::KernelSpec rows_spec(const KernelConfig& any, const BatchFeatures& features, jit::Arch arch) {
  using jit::Constant;
  const BatchConfig config = batch_config(any);
  std::vector<Constant> own = {Constant::integer("kWarps", config.warps),
                               Constant::integer("kResident", config.resident),
                               Constant::integer("kTileRows", config.tile_rows),
                               Constant::integer("kTileColumns", config.tile_columns),
                               Constant::integer("kRuns", features.runs),
                               Constant::integer("kPages", static_cast<int>(features.pages)),
                               Constant::boolean("kListed", features.listed),
                               Constant::boolean("kRowLimits", features.row_limits),
                               Constant::boolean("kInterleaved", features.interleaved)};
  std::ranges::move(config.kernel->constants(any, features), std::back_inserter(own));
  jit::KernelSpec spec = attention::forward_spec(config.kernel->entry, config.kernel->source,
                                                 config.stages, own, features.attention, arch);
  spec.config = to_string(any);
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
