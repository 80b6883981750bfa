#include "attention/kernel_work.h"

#include "attention/wgmma_work.h"

namespace annulus::attention {
namespace {

constexpr double KernelWork::*kQuantities[] = {
    &KernelWork::warp_instructions, &KernelWork::matrix_flop, &KernelWork::special_lanes,
    &KernelWork::shared_wavefronts, &KernelWork::read_bytes,  &KernelWork::written_bytes,
    &KernelWork::barriers};

// What one warp does: `rows` pieces of 16 query rows each, the operands cut into squares of 16.
struct WarpShape {
  double warps, rows, columns, qk, v;  // pieces of 16, except for warps
};

WarpShape warp_shape(const KernelConfig& config, const Dims& dims) {
  return {static_cast<double>(config.warps), config.tile_rows / (16.0 * config.warps),
          config.tile_columns / 16.0, static_cast<double>(dims.qk) / 16.0,
          static_cast<double>(dims.v) / 16.0};
}

// Instructions as PTX has them, found by counting; those that ptxas folds into others count as
// well.

// What makes a score of a product, per element of a lane.
double score_instructions(const KernelFeatures& features) {
  const double modified = features.score_mod.instructions;
  switch (features.score) {
    case kernels::Score::kPositiveScale:
      return modified;
    case kernels::Score::kAnyScale:
      return modified + 1;
    case kernels::Score::kSoftcap:
      return modified + 17;
  }
  return modified;
}

// What evaluates the mask for one element of a lane of a partial tile: about as much for each leaf.
// Where leaves compare positions, each makes the bits of a row of the lane at once, and an element
// costs the question for its bit.
double mask_instructions(const std::string& mask, int tile_columns) {
  double leaves = 0;
  for (std::size_t at = 0; (at = mask.find("m.", at)) != std::string::npos; ++at) ++leaves;
  if (evaluated_in_loop(mask)) return leaves * 30;
  const double bits = std::min(32, tile_columns / 4);
  return leaves == 0 ? 0 : 2 + leaves * 10 / bits;
}

// One column tile, by all warps of a CTA.
KernelWork tile_work(const KernelConfig& config, const KernelFeatures& features, bool partial) {
  if (is_wgmma(config.family)) {
    return wgmma_tile_work(config, features, score_instructions(features),
                           partial ? mask_instructions(features.mask, config.tile_columns) : 0);
  }
  const auto [warps, rows, columns, qk, v] = warp_shape(config, features.dims);
  const double elements = rows * columns * 8;  // scores of a lane
  const double bytes = 2.0 * 16 * columns * 16 * (qk + v);
  const double products = 2 * rows * columns * (qk + v);  // mma.sync of a warp
  const double fragments = columns * (qk + v) + (config.query_in_registers ? 0 : rows * qk);
  const double copies = bytes / 16 / (32 * warps);
  const bool softcap = features.score == kernels::Score::kSoftcap;

  KernelWork work;
  work.matrix_flop = warps * products * (2 * 16 * 8 * 16);
  // A power for each element and one for each row's shrinking, which all four lanes compute.
  work.special_lanes =
      32 * warps * (elements * ((softcap ? 3 : 1) + features.score_mod.special) + 2 * rows);
  work.shared_wavefronts = warps * 4 * fragments + bytes / 128;
  work.read_bytes = bytes;
  work.barriers = warps * (config.stages == 1 ? 2 : 1);
  // An element costs its zero, its maximum, its exponent's argument, its power and its sum, and
  // half a conversion; an output its shrinking; a row two exchanges and what belongs to them; a
  // fragment its address, a copy its two and whether its row exists.
  double instructions = products + 2 * fragments + 6.75 * copies + 5.5 * elements + rows * v * 8 +
                        rows * 2 * 16 + (config.stages == 1 ? 107 : 87);
  instructions += elements * score_instructions(features);
  if (partial) instructions += elements * mask_instructions(features.mask, config.tile_columns);
  work.warp_instructions = warps * instructions;
  return work;
}

// What a CTA does besides its tiles.
KernelWork frame_work(const KernelConfig& config, const KernelFeatures& features) {
  if (is_wgmma(config.family)) return wgmma_frame_work(config, features);
  const auto [warps, rows, columns, qk, v] = warp_shape(config, features.dims);
  const double query_bytes = 2.0 * config.tile_rows * 16 * qk;
  const double output_elements = rows * v * 8;  // of a lane
  KernelWork work;
  work.read_bytes = query_bytes;
  work.shared_wavefronts = query_bytes / 128;
  if (config.query_in_registers) work.shared_wavefronts += warps * 4 * rows * qk;
  const double state_bytes = 4.0 * config.tile_rows * (16 * v + 2);
  double instructions =
      300 + 30 * (config.stages - 1) + query_bytes / 16 / (32 * warps) * 1.5 + output_elements;
  if (features.carry_in) {
    work.read_bytes += state_bytes;
    instructions += output_elements;
  }
  if (features.carry_out) {
    work.written_bytes = state_bytes;
    instructions += output_elements * 2;
  } else {
    // O is written to shared memory in pairs and leaves in pieces of 16 bytes.
    const double output_bytes = 2.0 * config.tile_rows * 16 * v;
    work.written_bytes = output_bytes;
    work.shared_wavefronts += warps * output_elements / 2 + output_bytes / 128;
    instructions += output_elements * 3.3 + output_bytes / 16 / (32 * warps) * 3;
    // The inverse of each row's sum in all lanes, its logarithm in one lane of four.
    work.special_lanes = warps * rows * 2 * (32 + 8);
  }
  work.warp_instructions = warps * instructions;
  return work;
}

}  // namespace

KernelWork estimate_work(const KernelConfig& config, const KernelFeatures& features,
                         const TileCounts& tiles) {
  const KernelWork full = tile_work(config, features, false);
  const KernelWork partial = tile_work(config, features, true);
  const KernelWork frame = frame_work(config, features);
  // Tiles are counted head by head; a CTA takes those of several at once.
  const double share = 1.0 / config.heads;
  KernelWork work;
  for (double KernelWork::*quantity : kQuantities) {
    work.*quantity = share * (full.*quantity * static_cast<double>(tiles.full_tiles) +
                              partial.*quantity * static_cast<double>(tiles.partial_tiles) +
                              frame.*quantity * static_cast<double>(tiles.ctas));
  }
  return work;
}

KernelWork counted_work(const abi::SimulatorCounters& counters) {
  constexpr double kSectorBytes = 32;
  constexpr double kWavefrontBytes = 128;
  KernelWork work;
  work.warp_instructions = static_cast<double>(counters.warp_instructions);
  work.matrix_flop = static_cast<double>(counters.matrix_flop);
  work.special_lanes = static_cast<double>(counters.special_lanes);
  // Products and bulk copies move 128 bytes in a cycle.
  work.shared_wavefronts =
      static_cast<double>(counters.shared_wavefronts) +
      static_cast<double>(counters.matrix_shared_bytes + counters.bulk_bytes) / kWavefrontBytes;
  work.read_bytes = kSectorBytes * static_cast<double>(counters.global_sectors_read);
  work.written_bytes = kSectorBytes * static_cast<double>(counters.global_sectors_written);
  work.barriers = static_cast<double>(counters.barrier);
  return work;
}

KernelWork extend_work(const KernelWork& counted_part, const KernelWork& estimated_part,
                       const KernelWork& estimated_whole) {
  KernelWork work;
  for (double KernelWork::*quantity : kQuantities) {
    const double part = estimated_part.*quantity;
    const double correction = part > 0 ? counted_part.*quantity / part : 1.0;
    work.*quantity = estimated_whole.*quantity * correction;
  }
  return work;
}

double least_bytes(const Problem& problem) {
  const auto product = [](std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) {
    return static_cast<double>(a) * static_cast<double>(b) * static_cast<double>(c) *
           static_cast<double>(d);
  };
  const double rows = product(problem.batch, problem.heads, problem.seq_q, 1);
  const double state = rows * static_cast<double>(problem.dim_v + 2) * 4;
  const auto element = static_cast<double>(size_in_bytes(problem.dtype));
  double bytes = rows * static_cast<double>(problem.dim_qk) * element;
  bytes += product(problem.batch, problem.kv_heads, problem.seq_k, problem.dim_qk + problem.dim_v) *
           element;
  bytes += problem.carry_in ? state : 0;
  bytes += problem.carry_out ? state : rows * static_cast<double>(problem.dim_v) * 2;
  return bytes;
}

}  // namespace annulus::attention
