#include "attention/kernels/mma/config.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "attention/kernels/mma/family.h"

namespace annulus::attention {
namespace {

constexpr std::int64_t kElementBytes = 2;
constexpr int kMaxResident = 8;

// With at most this number of fragment registers, ptxas spills nothing, whatever the features of a
// kernel. With more, it spills for whole rows of a band of keys and scaled scores only beyond
// kBandRegisters, on 8.x and with more than one buffer. It spills more than kMaxSpilledBytes only
// beyond kMaxFragmentRegisters (tests/attention/kernel_compile_test.cc).
std::int64_t unspilled_registers(jit::Arch arch) { return arch.number >= 120 ? 152 : 160; }
constexpr std::int64_t kBandRegisters = 176, kMaxFragmentRegisters = 224;

// Rows that all threads of tile::TileCopier copy in one pass: 8 or 4 threads share a row, as its
// swizzle has groups of 8 or 4 chunks (templates/tile/swizzle.cuh).
std::int64_t rows_per_pass(const MmaConfig& config, std::int64_t dim) {
  return 32 * config.warps / (dim % 64 == 0 ? 8 : 4);
}

// Bytes of Q, then of K and V of all stages: the layout of shared memory in mma_forward.
std::int64_t shared_bytes_of(const MmaConfig& config, const Dims& dims) {
  return config.tile_rows * dims.qk * kElementBytes +
         config.stages * config.tile_columns * (dims.qk + dims.v) * kElementBytes;
}

// Registers of a thread for the fragments of scores, of the output and, if it is kept there, of Q.
std::int64_t fragment_registers(const MmaConfig& config, const Dims& dims) {
  const std::int64_t row_tiles = config.tile_rows / (config.warps * 16);
  const std::int64_t query = config.query_in_registers ? dims.qk / 4 : 0;
  return row_tiles * (config.tile_columns / 2 + dims.v / 2 + query);
}

}  // namespace

// Most of these rules are static_asserts of the template (templates/README.md lists them); here
// they return a sentence before anything is compiled. The bounds on columns, stages and resident
// CTAs limit the search space, and templates/README.md states them as well. The last two bounds
// come from the hardware: shared memory, and the registers beyond which ptxas spills too much.
std::optional<std::string> mma_why_illegal(const KernelConfig& any, const Dims& dims,
                                           jit::Arch arch) {
  const MmaConfig config = mma_config(any);
  if (arch.number < 80) {
    return fmt::format("{} has no cp.async and no bf16 tensor cores; the mma family needs sm_80",
                       jit::to_string(arch));
  }
  if (auto reason = why_unsupported(dims)) return reason;
  if (config.warps != 4 && config.warps != 8) {
    return fmt::format("{} warps: a CTA has 4 or 8", config.warps);
  }
  if (config.tile_rows != config.warps * 16 && config.tile_rows != config.warps * 32) {
    return fmt::format("{} rows for {} warps: each warp owns 16 or 32 rows", config.tile_rows,
                       config.warps);
  }
  if (config.tile_columns < 16 || config.tile_columns > 128 || config.tile_columns % 16 != 0) {
    return fmt::format("{} columns: a tile has a multiple of 16 from 16 to 128",
                       config.tile_columns);
  }
  if (config.stages < 1 || config.stages > 4) {
    return fmt::format("{} stages: the pipeline has 1 to 4", config.stages);
  }
  if (config.resident < 1 || config.resident > kMaxResident) {
    return fmt::format("{} resident CTAs: it must be 1 to {}", config.resident, kMaxResident);
  }
  for (const std::int64_t dim : {dims.qk, dims.v}) {
    const std::int64_t pass = rows_per_pass(config, dim);
    if (config.tile_columns % pass != 0 || config.tile_rows % pass != 0) {
      return fmt::format("{} rows and {} columns: {} threads copy {} rows of head dim {} at a time",
                         config.tile_rows, config.tile_columns, 32 * config.warps, pass, dim);
    }
  }
  const std::int64_t bytes = shared_bytes_of(config, dims);
  if (bytes > shared_limit(arch)) {
    return fmt::format("{} bytes of shared memory, but {} gives a CTA at most {}", bytes,
                       jit::to_string(arch), shared_limit(arch));
  }
  const std::int64_t registers = fragment_registers(config, dims);
  if (registers > kMaxFragmentRegisters) {
    return fmt::format(
        "scores and output take {} registers of a thread, and beyond {} {} spills "
        "more than {} bytes",
        registers, kMaxFragmentRegisters, jit::to_string(arch), kMaxSpilledBytes);
  }
  return std::nullopt;
}

std::optional<std::string> mma_why_spills(const KernelConfig& any, const Dims& dims,
                                          jit::Arch arch) {
  const MmaConfig config = mma_config(any);
  const bool band = arch.number < 90 && config.stages > 1;
  const std::int64_t most = band ? kBandRegisters : unspilled_registers(arch);
  const std::int64_t registers = fragment_registers(config, dims);
  if (registers <= most) return std::nullopt;
  return fmt::format("scores and output take {} registers of a thread, and beyond {} {} may spill",
                     registers, most, jit::to_string(arch));
}

// The family's other tiles suit every problem about equally well.
std::optional<std::string> mma_why_unsuited(const KernelConfig& any, const SuitQuestion& question) {
  const Problem& problem = question.problem;
  const Dims dims = {problem.dim_qk, problem.dim_v};
  if (fragment_registers(mma_config(any), dims) <= unspilled_registers(question.arch) ||
      (is_plain(problem, question.positions) &&
       question.positions == kernels::Positions::kOneSegment && !problem.carry_in &&
       is_folded(score_numbers(problem).scale))) {
    return std::nullopt;
  }
  return "scores and output leave no registers for more than a band of keys and scaled scores";
}

void mma_enumerate(const AddCandidates& add) {
  const auto add_residents = [&](MmaConfig config) {
    std::vector<KernelConfig> alternatives;
    for (config.resident = kMaxResident; config.resident >= 1; --config.resident) {
      alternatives.push_back(config);
    }
    add(alternatives);
  };
  for (const int warps : {4, 8}) {
    for (const int rows : {16, 32}) {
      for (int columns = 16; columns <= 128; columns += 16) {
        for (int stages = 1; stages <= 4; ++stages) {
          for (const bool query_in_registers : {false, true}) {
            add_residents({rows * warps, columns, warps, stages, query_in_registers, 1});
          }
        }
      }
    }
  }
}

CtaShape mma_cta(const KernelConfig& any) {
  const MmaConfig config = mma_config(any);
  return {.threads = 32 * config.warps,
          .warps = config.warps,
          .stages = config.stages,
          .resident = config.resident};
}

Footprint mma_footprint(const KernelConfig& any, const Dims& dims) {
  constexpr int kRegisterFile = 65536;
  const MmaConfig config = mma_config(any);
  const std::int64_t fragments = fragment_registers(config, dims);
  const int most = std::min(255, kRegisterFile / (32 * config.warps * config.resident) / 8 * 8);
  // The constants are fitted to the registers that ptxas used for the whole search space at head
  // dims 64 and 128.
  const int scores = config.tile_rows / (config.warps * 16) * config.tile_columns;
  const int wanted =
      static_cast<int>(fragments) + 45 + scores * 2 / 5 - (config.query_in_registers ? 10 : 0);
  return {.shared_bytes = shared_bytes_of(config, dims),
          .fragment_registers = fragments,
          .least_registers = static_cast<int>(std::min<std::int64_t>(255, fragments + 48)),
          .max_registers = most,
          .predicted_registers = std::min(wanted, most)};
}

}  // namespace annulus::attention
