#include "attention/wgmma_config.h"

#include <fmt/core.h>

#include <algorithm>

namespace annulus::attention {
namespace {

// What a CTA of sm_90 may have.
constexpr std::int64_t kMostSharedBytes = 227 * 1024;
constexpr std::int64_t kOutputBytes = 2;  // of an element of O
constexpr std::int64_t kSumBytes = 4;     // of one that is put by

// Tiles are panels of 128 bytes of columns, of which the last may be partly empty.
std::int64_t panel_bytes(std::int64_t rows, std::int64_t columns, std::int64_t element) {
  return rows * ((columns * element + 127) / 128) * 128;
}

// Keys whose products a consumer lets tensor cores add up.
constexpr int kKeysTogether = 512;

std::int64_t bytes_with(const KernelConfig& config, const Dims& dims, bool output_apart,
                        bool promotes) {
  constexpr std::int64_t kBarrierBytes = 8;
  const std::int64_t rows = config.warps * 16;
  const std::int64_t columns = std::int64_t{config.blocks} * config.tile_columns;
  const std::int64_t element = element_bytes(config.family);
  const bool transposes = element == 1;
  const std::int64_t stage = panel_bytes(columns, dims.qk, element) +
                             panel_bytes(columns, dims.v, element) +
                             (transposes ? panel_bytes(dims.v, columns, element) : 0);
  const std::int64_t barriers = 2 + (transposes ? 6 : 4) * config.stages;
  return panel_bytes(rows, dims.qk, element) + config.stages * stage +
         (output_apart ? panel_bytes(rows, dims.v, kOutputBytes) : 0) +
         (promotes ? rows * dims.v * kSumBytes : 0) + kBarrierBytes * (barriers + 1);
}

}  // namespace

bool output_apart(const KernelConfig& config, const Dims& dims) {
  return element_bytes(config.family) < kOutputBytes ||
         bytes_with(config, dims, true, false) <= kMostSharedBytes;
}

int promote_steps(const KernelConfig& config, const Dims& dims) {
  constexpr std::int64_t kMostDim = 128;  // beyond, the output is rescaled at another time
  if (element_bytes(config.family) != 1 || dims.v > kMostDim) return 0;
  if (bytes_with(config, dims, true, true) > kMostSharedBytes) return 0;
  return std::max(1, kKeysTogether / (config.blocks * config.tile_columns));
}

std::int64_t wgmma_shared_bytes(const KernelConfig& config, const Dims& dims) {
  return bytes_with(config, dims, output_apart(config, dims), promote_steps(config, dims) > 0);
}

std::int64_t wgmma_fragment_registers(const KernelConfig& config, const Dims& dims) {
  const std::int64_t columns = std::int64_t{config.blocks} * config.tile_columns;
  const std::int64_t element = element_bytes(config.family);
  const std::int64_t query = config.query_in_registers ? dims.qk * element / 8 : 0;
  return columns / 2 + columns * element / 8 + dims.v / 2 + query;
}

std::optional<std::string> why_illegal_wgmma(const KernelConfig& config, const Dims& dims,
                                             jit::Arch arch) {
  if (arch.number != 90 || arch.feature != 'a') {
    return fmt::format("{} has no wgmma; the wgmma family needs sm_90a", jit::to_string(arch));
  }
  if (dims.qk < 64 || dims.v < 64) {
    return fmt::format("head dims {}/{}: the wgmma family has those from 64 on", dims.qk, dims.v);
  }
  if (config.warps != 4 && config.warps != 8 && config.warps != 12) {
    return fmt::format("{} warps: 4, 8 or 12 compute", config.warps);
  }
  const int warpgroups = config.warps / 4;
  if (config.heads != 1 && config.heads != warpgroups) {
    return fmt::format("{} heads for {} warpgroups: one, or one for each", config.heads,
                       warpgroups);
  }
  if (config.tile_rows * config.heads != warpgroups * 64) {
    return fmt::format("{} rows of {} heads for {} warps: four warps own 64 rows", config.tile_rows,
                       config.heads, config.warps);
  }
  if (config.blocks != 1 && config.blocks != 2) {
    return fmt::format("{} tiles to a step: 1 or 2", config.blocks);
  }
  if (config.cluster != 1 && config.cluster != 2) {
    return fmt::format("{} CTAs to a cluster: 1 or 2", config.cluster);
  }
  // wgmma's own bound is 256.
  if (config.tile_columns < 16 || config.tile_columns % 16 != 0 ||
      config.blocks * config.tile_columns < 64 || config.blocks * config.tile_columns > 192) {
    return fmt::format("{} x {} columns: a tile has a multiple of 16, a step 64 to 192",
                       config.blocks, config.tile_columns);
  }
  if (element_bytes(config.family) == 1 && config.blocks * config.tile_columns % 32 != 0) {
    return fmt::format("{} x {} columns: a product of 8-bit elements has 32 keys", config.blocks,
                       config.tile_columns);
  }
  if (config.stages < 1 || config.stages > 4) {
    return fmt::format("{} stages: the pipeline has 1 to 4", config.stages);
  }
  if (config.resident != 1) return "several resident CTAs are for the mma family";
  const std::int64_t bytes = wgmma_shared_bytes(config, dims);
  if (bytes > shared_limit(arch)) {
    return fmt::format("{} bytes of shared memory, but {} gives a CTA at most {}", bytes,
                       jit::to_string(arch), shared_limit(arch));
  }
  // Of the 256, 240 and 160 that a thread has beside one, two or three warpgroups; what remains
  // is for addresses, rows and masks, and of 8-bit elements for scales. Near the bound only masks
  // of positions find room, and none of it may be Q.
  constexpr int kMost[] = {200, 196, 128};
  constexpr int kMostWithQuery[] = {200, 180, 104};
  constexpr int kMostScaled[] = {188, 168, 92};
  const int most = (element_bytes(config.family) == 1 ? kMostScaled
                    : config.query_in_registers       ? kMostWithQuery
                                                      : kMost)[warpgroups - 1];
  const std::int64_t registers = wgmma_fragment_registers(config, dims);
  if (registers > most) {
    return fmt::format("scores and output take {} registers of a thread, and beyond {} it spills",
                       registers, most);
  }
  return std::nullopt;
}

}  // namespace annulus::attention
