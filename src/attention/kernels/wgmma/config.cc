#include "attention/kernels/wgmma/config.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/math.h"

namespace annulus::attention {
namespace {

// The most shared memory of a CTA of sm_90, the only architecture of these families.
constexpr std::int64_t kMaxSharedBytes = 227 * 1024;
constexpr std::int64_t kReservedBytes = 1024;  // the driver's share of each CTA's shared memory
constexpr std::int64_t kOutputBytes = 2;       // bytes of an element of O
constexpr std::int64_t kSumBytes = 4;          // bytes of an element of the promoted output
constexpr int kMaxStepColumns = 192;

// Bytes of a tile. A tile is made of panels, whose rows have row_bytes bytes of columns
// (templates/tile/panel.cuh). The last panel may be partly empty.
std::int64_t panel_bytes(std::int64_t rows, std::int64_t columns, std::int64_t element,
                         std::int64_t row_bytes = 128) {
  return rows * base::round_up(columns * element, row_bytes);
}

// Keys whose 8-bit products tensor cores may add up before the output is promoted. docs/kernels.md
// lists the errors that a model of tensor cores has with this number.
constexpr int kKeysTogether = 512;

// Bytes of shared memory: Q, stages of K and V (V twice for 8-bit elements), O if it has memory of
// its own, or the promoted output, in whose memory O is staged, and barriers. WgmmaLayout in
// templates/kernels/wgmma/work.cuh computes the same on the device.
std::int64_t bytes_with(const KernelConfig& any, const Dims& dims, bool output_apart,
                        bool promotes) {
  constexpr std::int64_t kBarrierBytes = 8;
  constexpr std::int64_t kScheduler = 4;  // an unused word, two barriers and the drawn work
  const WgmmaConfig config = wgmma_config(any);
  const std::int64_t rows = config.warps * 16;
  const std::int64_t columns = config.step_columns();
  const std::int64_t element = any.family->element_bytes;
  const bool transposes = element == 1;
  const std::int64_t stage =
      panel_bytes(columns, dims.qk, element) +
      panel_bytes(columns, dims.v, element, value_row_bytes(dims.v, element)) +
      (transposes ? panel_bytes(dims.v, columns, element) : 0);
  // Each stage also has two entries of a list, which take the bytes of one barrier.
  const std::int64_t barriers = 2 + (transposes ? 7 : 5) * config.stages;
  constexpr std::int64_t kBytesOfRow = 16;  // row maxima of the promoted output, padded
  const std::int64_t output = promotes       ? rows * (dims.v * kSumBytes + kBytesOfRow)
                              : output_apart ? panel_bytes(rows, dims.v, kOutputBytes)
                                             : 0;
  return panel_bytes(rows, dims.qk, element) + config.stages * stage + output +
         kBarrierBytes * (barriers + kScheduler);
}

std::int64_t shared_bytes_of(const KernelConfig& config, const Dims& dims) {
  return bytes_with(config, dims, output_apart(config, dims), promote_steps(config, dims) > 0);
}

// Registers of a thread for the fragments of scores, of probabilities as elements, of the output
// and, if it is kept there, of Q.
std::int64_t fragment_registers(const KernelConfig& any, const Dims& dims) {
  const WgmmaConfig config = wgmma_config(any);
  const std::int64_t columns = config.step_columns();
  const std::int64_t element = any.family->element_bytes;
  const std::int64_t query = config.query_in_registers ? dims.qk * element / 8 : 0;
  return columns / 2 + columns * element / 8 + dims.v / 2 + query;
}

// A thread has 256, 240 or 160 registers if one, two or three warpgroups compute. The numbers here
// are the registers that may hold fragments. The rest is for addresses, rows and masks, and with
// 8-bit elements for scales, which take more if a step has two tiles. Near the bound only masks
// that compare positions fit, so configurations with Q in registers have a lower bound. With 8-bit
// elements a few configurations between 160 and 168 spill up to 28 bytes.
int max_fragment_registers(const KernelConfig& any) {
  constexpr int kMax[] = {200, 196, 128};
  constexpr int kMaxWithQuery[] = {200, 180, 104};
  constexpr int kMaxScaled[] = {188, 168, 92};
  constexpr int kMaxScaledOfTwoTiles[] = {180, 156, 92};
  const WgmmaConfig config = wgmma_config(any);
  constexpr int kMaxOfTwo = 180;  // the number for two CTAs, whose threads have 232 registers
  if (config.resident == 2) return kMaxOfTwo;
  const bool scaled = any.family->element_bytes == 1;
  return (scaled && config.blocks == 2 ? kMaxScaledOfTwoTiles
          : scaled                     ? kMaxScaled
          : config.query_in_registers  ? kMaxWithQuery
                                       : kMax)[config.warpgroups() - 1];
}

// Why a CTA cannot have such numbers of warps, rows and heads, or nullopt.
std::optional<std::string> why_no_such_cta(const WgmmaConfig& config, std::int64_t element_bytes) {
  if (config.warps != 4 && config.warps != 8 && config.warps != 12) {
    return fmt::format("{} warps: 4, 8 or 12 compute", config.warps);
  }
  const int warpgroups = config.warpgroups();
  if (config.heads != 1 && config.heads != warpgroups) {
    return fmt::format("{} heads for {} warpgroups: one, or one for each", config.heads,
                       warpgroups);
  }
  if (config.tile_rows * config.heads != warpgroups * 64) {
    return fmt::format("{} rows of {} heads for {} warps: four warps own 64 rows", config.tile_rows,
                       config.heads, config.warps);
  }
  if (config.resident != 1 && (config.resident != 2 || warpgroups != 1 || config.cluster != 1)) {
    return fmt::format(
        "{} CTAs to a multiprocessor: one, or two of one warpgroup each, in no cluster",
        config.resident);
  }
  if (config.resident == 2 && element_bytes == 1) {
    return "8-bit elements: the warps that transpose V leave no registers for two CTAs";
  }
  if (config.without_turns && warpgroups == 1) {
    return "one warpgroup takes no turns, so that it cannot be without them";
  }
  return std::nullopt;
}

// Why such a step of tiles, such stages or such a cluster are not possible, or nullopt.
std::optional<std::string> why_no_such_step(const WgmmaConfig& config, std::int64_t element) {
  if (config.blocks != 1 && config.blocks != 2) {
    return fmt::format("{} tiles to a step: 1 or 2", config.blocks);
  }
  if (config.cluster != 1 && config.cluster != 2) {
    return fmt::format("{} CTAs to a cluster: 1 or 2", config.cluster);
  }
  // The instruction's own bound is 256 columns; kMaxStepColumns is the number for which there are
  // enough registers.
  const std::int64_t columns = config.step_columns();
  if (config.tile_columns < 16 || config.tile_columns % 16 != 0 || columns < 64 ||
      columns > kMaxStepColumns) {
    return fmt::format("{} x {} columns: a tile has a multiple of 16, a step 64 to {}",
                       config.blocks, config.tile_columns, kMaxStepColumns);
  }
  if (element == 1 && columns % 32 != 0) {
    return fmt::format("{} x {} columns: a product of 8-bit elements has 32 keys", config.blocks,
                       config.tile_columns);
  }
  if (config.stages < 1 || config.stages > 4) {
    return fmt::format("{} stages: the pipeline has 1 to 4", config.stages);
  }
  return std::nullopt;
}

}  // namespace

std::int64_t value_row_bytes(std::int64_t dim_v, std::int64_t element_bytes) {
  return element_bytes == 2 && dim_v % 64 != 0 ? 64 : 128;
}

bool output_apart(const KernelConfig& config, const Dims& dims) {
  const std::int64_t resident = wgmma_config(config).resident;
  return config.family->element_bytes < kOutputBytes ||
         resident * (bytes_with(config, dims, true, false) + kReservedBytes) <=
             kMaxSharedBytes + kReservedBytes;
}

int promote_steps(const KernelConfig& config, const Dims& dims) {
  constexpr std::int64_t kMaxDim = 128;  // larger outputs are rescaled before the product
                                         // (kRescaleFirst)
  if (config.family->element_bytes != 1 || dims.v > kMaxDim) return 0;
  if (bytes_with(config, dims, true, true) > kMaxSharedBytes) return 0;
  return std::max(1, kKeysTogether / static_cast<int>(wgmma_config(config).step_columns()));
}

bool reads_scales_by_step(const KernelConfig& config, const KernelFeatures& features) {
  const bool once = features.head_scales && !features.carry_in && !features.general;
  return config.family->element_bytes == 1 && !once;
}

std::optional<std::string> wgmma_why_illegal(const KernelConfig& any, const Dims& dims,
                                             jit::Arch arch) {
  if (auto reason = why_unsupported(dims)) return reason;
  if (arch.number != 90 || arch.feature != 'a') {
    return fmt::format("{} has no wgmma; the wgmma family needs sm_90a", jit::to_string(arch));
  }
  if (dims.qk < 64 || dims.v < 64) {
    return fmt::format("head dims {}/{}: the wgmma family has those from 64 on", dims.qk, dims.v);
  }
  const WgmmaConfig config = wgmma_config(any);
  if (auto reason = why_no_such_cta(config, any.family->element_bytes)) return reason;
  if (auto reason = why_no_such_step(config, any.family->element_bytes)) return reason;
  const std::int64_t bytes = shared_bytes_of(any, dims);
  if (bytes > shared_limit(arch)) {
    return fmt::format("{} bytes of shared memory, but {} gives a CTA at most {}", bytes,
                       jit::to_string(arch), shared_limit(arch));
  }
  if (config.resident * (bytes + kReservedBytes) > kMaxSharedBytes + kReservedBytes) {
    return fmt::format("{} CTAs of {} bytes of shared memory do not fit a multiprocessor",
                       config.resident, bytes);
  }
  const std::int64_t registers = fragment_registers(any, dims);
  if (registers > max_fragment_registers(any)) {
    return fmt::format("scores and output take {} registers of a thread, and beyond {} it spills",
                       registers, max_fragment_registers(any));
  }
  return std::nullopt;
}

// Whether heads may share a CTA or a cluster depends on the problem; the search checks that.
void wgmma_enumerate(const Family& family, const AddCandidates& add) {
  for (const int warps : {4, 8, 12}) {
    for (const int heads : {1, 2, 3}) {
      for (const int blocks : {1, 2}) {
        for (int columns = 16; columns <= kMaxStepColumns; columns += 16) {
          for (int stages = 1; stages <= 4; ++stages) {
            for (const bool query : {false, true}) {
              for (const int cluster : {1, 2}) {
                WgmmaConfig config = {
                    warps * 16 / heads, columns, warps, stages, query, blocks, heads, cluster};
                WgmmaConfig other = config;
                if (warps == 4) {
                  other.resident = 2;
                  add({{other.of(family), config.of(family)}});
                } else {
                  other.without_turns = true;
                  add({{config.of(family)}});
                  add({{other.of(family)}});
                }
              }
            }
          }
        }
      }
    }
  }
}

CtaShape wgmma_cta(const KernelConfig& any) {
  constexpr int kCopyingThreads = 128;
  const WgmmaConfig config = wgmma_config(any);
  return {.threads = config.warps * 32 + kCopyingThreads,
          .warps = config.warps,
          .stages = config.stages,
          .step_tiles = config.blocks,
          .heads = config.heads,
          .cluster = config.cluster,
          .resident = config.resident};
}

// The resident CTAs take all registers of the multiprocessor, and their warpgroups exchange
// registers at run time, so least_registers is 0.
Footprint wgmma_footprint(const KernelConfig& config, const Dims& dims) {
  constexpr int kRegisterFile = 65536;
  const CtaShape cta = wgmma_cta(config);
  const int all = std::min(255, kRegisterFile / (cta.threads * cta.resident) / 8 * 8);
  return {.shared_bytes = shared_bytes_of(config, dims),
          .fragment_registers = fragment_registers(config, dims),
          .least_registers = 0,
          .max_registers = all,
          .predicted_registers = all};
}

}  // namespace annulus::attention
