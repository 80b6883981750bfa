#include "batch/batch_space.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "base/math.h"
#include "batch/batch_config.h"
#include "params/batch_map_params.h"

namespace annulus::batch {
namespace {

using attention::AddCandidates;
using attention::Dims;
using attention::Footprint;

// The shared memory of a multiprocessor that the driver reserves for each CTA (CUDA programming
// guide, "Shared Memory" of compute capability 8.x and 9.0).
constexpr std::int64_t kReservedBytes = 1024;

constexpr int kMaxResident = 4;

// Bytes of Q and of the buffers of K and V.
std::int64_t chunk_bytes(const BatchConfig& config, const Dims& dims) {
  return kElementBytes *
         (config.tile_rows * dims.qk + config.stages * config.tile_columns * (dims.qk + dims.v));
}

// The bytes that chunk_bytes() counts, and m and l of each warp: the warps of decode_forward
// compute the same rows, each for other keys.
std::int64_t decode_bytes(const BatchConfig& config, const Dims& dims) {
  return chunk_bytes(config, dims) +
         config.warps * kernels::kPackedRows * 2 * std::int64_t{sizeof(float)};
}

constexpr std::int64_t kPanelColumns = 64;

// The numbers of columns, up to the most of a step, for which templates/ptx/wgmma.cuh has products.
constexpr int kProductColumns[] = {32, 64, 80, 96, 112, 128};

// The bytes of shared memory. ChunkLayout in templates/kernels/batch/chunk_layout.cuh computes the
// same on the device.
std::int64_t chunk_wgmma_bytes(const BatchConfig& config, const Dims& dims) {
  constexpr std::int64_t kBarrierBytes = 8, kStepBytes = 32, kUnused = 16;
  constexpr std::int64_t kWorkBytes = sizeof(kernels::ChunkWork);
  const Dims whole = {base::round_up(dims.qk, kPanelColumns),
                      base::round_up(dims.v, kPanelColumns)};
  return chunk_bytes(config, whole) + 2 * kBarrierBytes +
         config.stages * (4 * kBarrierBytes + kStepBytes) + 2 * kWorkBytes + kUnused;
}

std::optional<std::string> why_no_ampere(jit::Arch arch) {
  if (arch.number >= 80) return std::nullopt;
  return fmt::format("{} has no cp.async and no bf16 tensor cores; batches need sm_80",
                     jit::to_string(arch));
}

std::optional<std::string> why_no_such_pipeline(const BatchConfig& config) {
  if (config.stages < 2 || config.stages > 4) {
    return fmt::format("{} stages: the pipeline has 2 to 4", config.stages);
  }
  if (config.resident < 1 || config.resident > kMaxResident) {
    return fmt::format("{} resident CTAs: it must be 1 to {}", config.resident, kMaxResident);
  }
  return std::nullopt;
}

// Registers of a thread that hold no fragments, as ptxas used them in the space of head dims 32 to
// 256 on sm_80 and sm_90a.
struct OtherRegisters {
  int spills_much;  // roughly, the fewest registers with which no kernel spills more than
                    // kMaxSpilledBytes
  int unspilled;    // the fewest registers with which no kernel spills, whatever its features
  int wanted;       // roughly what a kernel with all features uses
};
constexpr OtherRegisters kDecodeRegisters = {48, 88, 121};
// Each score of a thread's rows adds to the wanted registers.
constexpr OtherRegisters kChunkRegisters = {80, 96, 85};

// The registers that a thread may have so that all resident CTAs fit.
int max_registers(const BatchConfig& config) {
  constexpr int kRegisterFile = 65536;
  return std::min(255, kRegisterFile / (batch_cta(config).threads * config.resident) / 8 * 8);
}

Footprint footprint_of(const BatchConfig& config, std::int64_t shared_bytes, int fragments,
                       const OtherRegisters& others) {
  const int most = max_registers(config);
  return {.shared_bytes = shared_bytes,
          .fragment_registers = fragments,
          .least_registers = fragments + others.spills_much,
          .max_registers = most,
          .predicted_registers = std::min(fragments + others.wanted, most)};
}

std::optional<std::string> why_may_spill(const Footprint& taken, const OtherRegisters& others,
                                         jit::Arch arch) {
  const std::int64_t left = taken.max_registers - taken.fragment_registers;
  if (left >= others.unspilled) return std::nullopt;
  return fmt::format(
      "scores and output leave {} registers of a thread, and with fewer than {} {} may spill", left,
      others.unspilled, jit::to_string(arch));
}

// The tile columns that are possible, as the lanes of a warp share the pages of a step evenly
// (templates/tile/key_window.cuh).
constexpr int kChunkColumns[] = {16, 32, 64, 128};

void add_residents(const AddCandidates& add, BatchConfig config) {
  std::vector<KernelConfig> alternatives;
  for (config.resident = kMaxResident; config.resident >= 1; --config.resident) {
    alternatives.push_back(config);
  }
  add(alternatives);
}

}  // namespace

std::optional<std::string> why_no_room(const KernelConfig& config, const Dims& dims,
                                       std::int64_t shared_limit) {
  const std::int64_t bytes = attention::shared_bytes(config, dims) + kernel_of(config).static_bytes;
  const int resident = batch_config(config).resident;
  const std::int64_t all = shared_limit + kReservedBytes;
  if (resident * (bytes + kReservedBytes) <= all) return std::nullopt;
  return fmt::format("{} CTAs of {} bytes of shared memory, but a multiprocessor has {}", resident,
                     bytes, all);
}

// The rules below are static_asserts of the templates (templates/README.md lists them), which here
// return sentences before anything is compiled; the limits of the search space; and the limits of
// the hardware.

std::optional<std::string> decode_why_illegal(const KernelConfig& any, const Dims& dims,
                                              jit::Arch arch) {
  const BatchConfig config = batch_config(any);
  if (auto reason = why_no_ampere(arch)) return reason;
  if (auto reason = attention::why_unsupported(dims)) return reason;
  if (config.tile_rows != kernels::kPackedRows || config.warps != 4) {
    return fmt::format("{} rows and {} warps: 4 warps have the same {} rows", config.tile_rows,
                       config.warps, static_cast<int>(kernels::kPackedRows));
  }
  if (config.tile_columns != 64 && config.tile_columns != 128) {
    return fmt::format("{} columns: a tile has 64 or 128, of which a warp takes a quarter",
                       config.tile_columns);
  }
  if (auto reason = why_no_such_pipeline(config)) return reason;
  return why_no_room(any, dims, attention::shared_limit(arch));
}

void decode_enumerate(const AddCandidates& add) {
  for (const int columns : {64, 128}) {
    for (int stages = 2; stages <= 4; ++stages) {
      for (const bool query : {false, true}) {
        add_residents(add, {&kDecodeKernel, kernels::kPackedRows, columns, 4, stages, query, 1});
      }
    }
  }
}

std::optional<std::string> decode_why_spills(const KernelConfig& config, const Dims& dims,
                                             jit::Arch arch) {
  return why_may_spill(decode_footprint(config, dims), kDecodeRegisters, arch);
}

Footprint decode_footprint(const KernelConfig& any, const Dims& dims) {
  const BatchConfig config = batch_config(any);
  const std::int64_t query = config.query_in_registers ? dims.qk / 4 : 0;
  const std::int64_t fragments = config.tile_columns / config.warps / 2 + dims.v / 2 + query;
  return footprint_of(config, decode_bytes(config, dims), static_cast<int>(fragments),
                      kDecodeRegisters);
}

std::optional<std::string> chunk_wgmma_why_illegal(const KernelConfig& any, const Dims& dims,
                                                   jit::Arch arch) {
  const BatchConfig config = batch_config(any);
  if (auto reason = why_no_ampere(arch)) return reason;
  if (arch != jit::Arch{90, 'a'}) {
    return fmt::format("{} has no products of warpgroups; they need sm_90a", jit::to_string(arch));
  }
  if (auto reason = attention::why_unsupported(dims)) return reason;
  if (config.tile_rows != 128 || config.warps != 8 || config.resident != 1) {
    return fmt::format(
        "{} rows, {} warps and {} resident CTAs: two warpgroups of 4 warps compute 64 rows each, "
        "and share a multiprocessor with no other CTA",
        config.tile_rows, config.warps, config.resident);
  }
  if (std::ranges::find(kProductColumns, config.tile_columns) == std::end(kProductColumns)) {
    return fmt::format(
        "{} columns: a tile has 32, or a multiple of 16 from 64 to 128, like the products",
        config.tile_columns);
  }
  if (config.query_in_registers)
    return "Q is never in registers: products read it from shared memory";
  if (auto reason = why_no_such_pipeline(config)) return reason;
  return why_no_room(any, dims, attention::shared_limit(arch));
}

void chunk_wgmma_enumerate(const AddCandidates& add) {
  for (const int columns : kProductColumns) {
    for (int stages = 2; stages <= 4; ++stages) {
      add({{BatchConfig{&kChunkWgmmaKernel, 128, columns, 8, stages, false, 1}}});
    }
  }
}

// With at most this number of registers for fragments, no kernel of the search space spills.
std::optional<std::string> chunk_wgmma_why_spills(const KernelConfig& config, const Dims& dims,
                                                  jit::Arch arch) {
  constexpr std::int64_t kMaxFragments = 176;
  const std::int64_t fragments = chunk_wgmma_footprint(config, dims).fragment_registers;
  if (fragments <= kMaxFragments) return std::nullopt;
  return fmt::format("scores and output take {} registers of a thread, and beyond {} {} may spill",
                     fragments, kMaxFragments, jit::to_string(arch));
}

// The CTA takes all registers of the multiprocessor, and its warpgroups exchange registers at run
// time, so least_registers is 0. Fragments are scores, probabilities as elements, and the output.
Footprint chunk_wgmma_footprint(const KernelConfig& any, const Dims& dims) {
  const BatchConfig config = batch_config(any);
  const std::int64_t scores = config.tile_columns / 2;
  const int most = max_registers(config);
  return {.shared_bytes = chunk_wgmma_bytes(config, dims),
          .fragment_registers = scores + scores / 2 + base::round_up(dims.v, kPanelColumns) / 2,
          .least_registers = 0,
          .max_registers = most,
          .predicted_registers = most};
}

std::optional<std::string> chunk_why_illegal(const KernelConfig& any, const Dims& dims,
                                             jit::Arch arch) {
  const BatchConfig config = batch_config(any);
  if (auto reason = why_no_ampere(arch)) return reason;
  if (auto reason = attention::why_unsupported(dims)) return reason;
  if (config.warps != 4 && config.warps != 8) {
    return fmt::format("{} warps: a CTA has 4 or 8", config.warps);
  }
  if (config.tile_rows != config.warps * 16 && config.tile_rows != config.warps * 32) {
    return fmt::format("{} rows for {} warps: each warp owns 16 or 32 rows", config.tile_rows,
                       config.warps);
  }
  if (std::ranges::find(kChunkColumns, config.tile_columns) == std::end(kChunkColumns)) {
    return fmt::format("{} columns: a tile has 16, 32, 64 or 128, so that pages divide it",
                       config.tile_columns);
  }
  // The rows that all threads of tile::RowCopier copy in one pass: 8 or 4 threads share a row, as
  // its swizzle has groups of 8 or 4 chunks (templates/tile/swizzle.cuh).
  for (const std::int64_t dim : {dims.qk, dims.v}) {
    const std::int64_t pass = 32 * config.warps / (dim % 64 == 0 ? 8 : 4);
    if (pass > 32 || config.tile_columns % pass != 0) {
      return fmt::format(
          "{} columns: {} threads copy {} rows of head dim {} at a time, which must divide them "
          "and be at most 32",
          config.tile_columns, 32 * config.warps, pass, dim);
    }
  }
  if (auto reason = why_no_such_pipeline(config)) return reason;
  const std::int64_t staging = config.warps * 16 * (dims.v + 8) * std::int64_t{sizeof(float)};
  if (staging > chunk_bytes(config, dims)) {
    return fmt::format("{} bytes of shared memory, and 16 rows of output of each warp take {}",
                       chunk_bytes(config, dims), staging);
  }
  return why_no_room(any, dims, attention::shared_limit(arch));
}

void chunk_enumerate(const AddCandidates& add) {
  for (const int warps : {4, 8}) {
    for (const int rows : {16, 32}) {
      for (const int columns : kChunkColumns) {
        for (int stages = 2; stages <= 4; ++stages) {
          for (const bool query : {false, true}) {
            add_residents(add, {&kChunkKernel, rows * warps, columns, warps, stages, query, 1});
          }
        }
      }
    }
  }
}

std::optional<std::string> chunk_why_spills(const KernelConfig& config, const Dims& dims,
                                            jit::Arch arch) {
  return why_may_spill(chunk_footprint(config, dims), kChunkRegisters, arch);
}

Footprint chunk_footprint(const KernelConfig& any, const Dims& dims) {
  const BatchConfig config = batch_config(any);
  const int row_tiles = config.tile_rows / (config.warps * 16);
  const std::int64_t query = config.query_in_registers ? dims.qk / 4 : 0;
  const std::int64_t fragments = row_tiles * (config.tile_columns / 2 + dims.v / 2 + query);
  OtherRegisters others = kChunkRegisters;
  others.wanted += row_tiles * config.tile_columns / 6;
  return footprint_of(config, chunk_bytes(config, dims), static_cast<int>(fragments), others);
}

attention::CtaShape batch_cta(const KernelConfig& any) {
  constexpr int kCopyingThreads = 128;
  const BatchConfig config = batch_config(any);
  return {.threads = 32 * config.warps + (config.kernel->by_maps ? kCopyingThreads : 0),
          .warps = config.warps,
          .stages = config.stages,
          .resident = config.resident};
}

}  // namespace annulus::batch
