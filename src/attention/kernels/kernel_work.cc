#include "attention/kernels/kernel_work.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "attention/kernels/family.h"
#include "pattern/leaves/leaves.h"

namespace annulus::attention {
namespace {

constexpr double KernelWork::*kQuantities[] = {
    &KernelWork::warp_instructions, &KernelWork::matrix_flop, &KernelWork::special_lanes,
    &KernelWork::shared_wavefronts, &KernelWork::read_bytes,  &KernelWork::written_bytes,
    &KernelWork::barriers};

// The numbers below are instructions in PTX, counted in compiled kernels. They include instructions
// that ptxas later folds into others.

// Instructions that make a score of a product, for each element of a lane: one multiplication by
// the scale, or 17 with soft-cap, most of them for its tanh.
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

// Instructions of the mask for one element of a lane in a partial tile. A leaf in a loop takes
// about 30. A leaf that compares positions takes about 10 for the bits of a row of the lane
// (columns / 4 bits, at most 32 to a word). Each element takes 2 for the test of its bit.
double mask_instructions(const std::string& mask, int tile_columns) {
  const auto all = static_cast<double>(pattern::leaves::leaf_calls(mask));
  const auto in_loop = static_cast<double>(pattern::leaves::long_calls(mask));
  const double bits = std::min(32, tile_columns / 4);
  return all == 0 ? 0 : 2 + in_loop * 30 + (all - in_loop) * 10 / bits;
}

// The expected number of steps j = 1 ... n of a row in which the max of one of a warp's rows
// changes, for n up to kExact. The table is constexpr, and std::pow is not.
constexpr int kRowsOfWarp = 16, kExact = 64;
constexpr std::array<double, kExact + 1> kMovedSteps = [] {
  std::array<double, kExact + 1> moved{};
  for (int j = 1; j <= kExact; ++j) {
    double all_stay = 1;
    for (int row = 0; row < kRowsOfWarp; ++row) all_stay *= 1 - 1.0 / j;
    moved[static_cast<std::size_t>(j)] = moved[static_cast<std::size_t>(j) - 1] + 1 - all_stay;
  }
  return moved;
}();

}  // namespace

double moved_share(double row_steps) {
  const double steps = std::max(1.0, row_steps);
  if (steps < kExact) {
    const auto whole = static_cast<std::size_t>(steps);
    const double rest = steps - static_cast<double>(whole);
    return std::lerp(kMovedSteps[whole], kMovedSteps[whole + 1], rest) / steps;
  }
  // For j > kExact the term 1 - (1 - 1 / j)^r is about r / j - r (r - 1) / (2 j^2). The sum of
  // these terms is approximated by their integral from kExact + 1/2 on.
  constexpr double kRows = kRowsOfWarp, kFrom = kExact + 0.5;
  const double to = steps + 0.5;
  const double tail = kRows * std::log(to / kFrom) - kRows * (kRows - 1) / 2 * (1 / kFrom - 1 / to);
  return (kMovedSteps.back() + tail) / steps;
}

KernelWork estimate_work(const KernelConfig& config, const KernelFeatures& features,
                         const TileCounts& tiles) {
  const Family& family = family_of(config);
  const CtaShape cta = family.cta(config);
  const double row_steps = static_cast<double>(tiles.tiles()) / cta.step_tiles /
                           static_cast<double>(std::max<std::int64_t>(1, tiles.ctas));
  TileContext context = {.score = score_instructions(features), .row_steps = row_steps};
  const KernelWork full = family.tile_work(config, features, context);
  context.mask = mask_instructions(features.mask, config.tile_columns);
  const KernelWork partial = family.tile_work(config, features, context);
  const KernelWork frame = family.row_work(config, features);
  // Tiles are counted for each head, but a CTA computes the tiles of several heads at once.
  const double share = 1.0 / cta.heads;
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
  // Products and bulk copies access 128 bytes of shared memory in a cycle.
  work.shared_wavefronts =
      static_cast<double>(counters.shared_wavefronts) +
      static_cast<double>(counters.matrix_shared_bytes + counters.bulk_bytes) / kWavefrontBytes;
  work.read_bytes = kSectorBytes * static_cast<double>(counters.global_sectors_read);
  work.written_bytes = kSectorBytes * static_cast<double>(counters.global_sectors_written);
  work.barriers = static_cast<double>(counters.barrier);
  return work;
}

KernelWork& KernelWork::operator+=(const KernelWork& other) {
  for (double KernelWork::*quantity : kQuantities) this->*quantity += other.*quantity;
  return *this;
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
