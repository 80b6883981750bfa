// The work of a kernel of wgmma or wgmma8, for each pipe.

#include "attention/kernels/wgmma/config.h"

namespace annulus::attention {
namespace {

constexpr double kRowsOfWarpgroup = 64;
constexpr double kDepthBytes = 32;    // bytes of K's depth that one product instruction takes
constexpr double kBytesOfOutput = 2;  // bytes of an element of O
constexpr double kWavefrontBytes = 128;
constexpr double kPartColumns = 32;  // columns of V in a part (templates/kernels/wgmma/parts.cuh)

}  // namespace

KernelWork wgmma_tile_work(const KernelConfig& any, const KernelFeatures& features,
                           const TileContext& context) {
  const WgmmaConfig config = wgmma_config(any);
  const double warps = config.warps;
  const double warpgroups = warps / 4;
  const double columns = config.tile_columns;
  const auto qk = static_cast<double>(features.dims.qk);
  const auto v = static_cast<double>(features.dims.v);
  const double elements = columns / 2;  // scores of a lane
  const double steps = 1.0 / config.blocks;
  const auto element = static_cast<double>(any.family->element_bytes);
  const double bytes = element * columns * (qk + v);

  // A soft-cap takes a tanh (an exponential and a reciprocal) in addition to the exponential of
  // softmax. A step takes one exponential for the correction of each of a lane's two rows.
  KernelWork work;
  work.matrix_flop = warpgroups * 2 * kRowsOfWarpgroup * columns * (qk + v);
  const bool softcap = features.score == kernels::Score::kSoftcap;
  work.special_lanes =
      32 * warps * (elements * ((softcap ? 3 : 1) + features.score_mod.special) + 2 * steps);
  // In each step every warpgroup reads K and V, and Q unless it has Q in registers; the copies
  // write K and V once.
  const double query_bytes =
      config.query_in_registers ? 0 : element * kRowsOfWarpgroup * qk * steps;
  work.shared_wavefronts = (warpgroups * (query_bytes + bytes) + bytes) / kWavefrontBytes;
  // 8-bit elements: V is transposed, which reads and writes it once more, 512 bytes at a time by
  // about 20 instructions. They count as 70, because products slow the instructions of all warps
  // (docs/kernels.md) and an H200 takes 8 % longer even so. Scales that a step reads take three
  // results of special functions and about 50 instructions. Promotion reads and writes the fp32 sum
  // every `promote` steps, with about 3 instructions for each of a lane's v / 2 outputs. Without
  // promotion, each part of 32 columns takes about 8 instructions of its own; its additions are
  // counted below, as the rescaling.
  const bool float8 = any.family->element_bytes == 1;
  const int promote = promote_steps(any, features.dims);
  const double transposed = float8 ? element * columns * v : 0;
  work.shared_wavefronts += 2 * transposed / kWavefrontBytes;
  double of_float8 = 0;
  const double scaled = reads_scales_by_step(any, features) ? steps : 0;
  work.special_lanes += 32 * warps * 3 * scaled;
  if (promote > 0) {
    work.shared_wavefronts +=
        2 * warpgroups * kRowsOfWarpgroup * v * 4 / kWavefrontBytes * steps / promote;
    of_float8 = v / 2 * 3 * steps / promote;
  } else if (float8) {
    of_float8 = v / kPartColumns * 8 * steps;
  }
  work.read_bytes = bytes / config.cluster;  // one copy serves all CTAs of a cluster
  work.barriers = warps * steps;
  // Machine instructions, counted in the main loop of a dense kernel (tools/bench/model
  // lists the instructions of a step). An element takes a maximum, the argument of its exponential,
  // the exponential, an addition and half a conversion: 4.5. A product takes 5.8 for itself and the
  // descriptors of its operands, and a step takes 60 for barriers, turns and rows. With 8-bit
  // elements these numbers are 3 and 100. An output takes its rescaling in the steps in which a
  // warp cannot skip it, and in every step if products with V come in parts.
  const bool in_parts = float8 && promote == 0;
  const double parts = in_parts ? v / kPartColumns : 1;
  const double rescaled = in_parts ? 1 : moved_share(context.row_steps);
  const double products = (qk * steps + columns * parts) * element / kDepthBytes;
  work.warp_instructions = warps * (elements * (4.5 + context.score + context.mask) +
                                    v / 2 * rescaled * steps + products * (float8 ? 3 : 5.8) +
                                    (float8 ? 100 : 60) * steps + 50 * scaled + of_float8) +
                           transposed / 512 * 70;
  return work;
}

// The work of a CTA for each row. Q is read once, and once more from shared memory into registers
// if it is kept there; a state is acc, m and l in fp32. O goes through shared memory. Instructions
// are about 500 for a work, and one to two for each output of a lane.
KernelWork wgmma_row_work(const KernelConfig& any, const KernelFeatures& features) {
  const WgmmaConfig config = wgmma_config(any);
  const double warps = config.warps;
  const double rows = warps * 16;
  const auto qk = static_cast<double>(features.dims.qk);
  const auto v = static_cast<double>(features.dims.v);
  const double query_bytes = static_cast<double>(any.family->element_bytes) * rows * qk;
  const double output_bytes = kBytesOfOutput * rows * v;
  const double state_bytes = 4 * rows * (v + 2);
  KernelWork work;
  work.read_bytes = query_bytes;
  work.shared_wavefronts = query_bytes / kWavefrontBytes * (config.query_in_registers ? 2 : 1);
  double instructions = 500 + v / 2;
  if (features.carry_in) {
    work.read_bytes += state_bytes;
    instructions += v / 2;
  }
  if (features.carry_out) {
    work.written_bytes = state_bytes;
    instructions += v;
  } else {
    // O is written to shared memory as matrices and read there by the bulk copy.
    work.written_bytes = output_bytes;
    work.shared_wavefronts += 2 * output_bytes / kWavefrontBytes;
    instructions += v / 2 * 2;
    work.special_lanes = warps * 2 * (32 + 8);
  }
  work.warp_instructions = warps * instructions;
  return work;
}

// In each warpgroup the products of one step run at the same time as the softmax of another
// (overlap). The ping-pong turn of a step is the only barrier that stalls a warp. The work of a CTA
// for a row without its tiles runs at the same time as the copies of the next row, which have
// begun, so the CTA waits for fewer latencies.
Pace wgmma_pace(const KernelConfig& config) {
  return {.products = Pace::Products::kWarpgroup,
          .product_rate = config.family->element_bytes == 1 ? 2.0 : 1.0,
          .barriers = 1.0 / wgmma_config(config).blocks,
          .frame_latencies = 2,
          .deal = Deal::kCounter};
}

}  // namespace annulus::attention
