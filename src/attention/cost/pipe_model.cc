#include "attention/cost/pipe_model.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "attention/cost/makespan.h"
#include "attention/kernels/family.h"

namespace annulus::attention {
namespace {

// Rates of one multiprocessor per cycle, and the usual device of an architecture, for drivers that
// do not report them.
struct Rates {
  int arch;
  double matrix_flop;
  double l2_bytes;  // 0: PipeConstants::l2_bytes applies
  double gigahertz;
  double memory_gigabytes;  // GB per second
};

// matrix_flop: the dense 16-bit peak over multiprocessors and boost clock of the data sheets (A100
// 312 TFLOP/s, 108 at 1.41 GHz; A40 150 TFLOP/s, 84 at 1.74 GHz). On sm_90 mma.sync reaches about
// 5/8 of the 4096 that wgmma does (Luo et al., arXiv 2402.13499). l2_bytes: 5120 bytes a cycle for
// 108 multiprocessors of the A100 (its white paper). The other rates are the same on all
// architectures: 16 special-function results, 4 issue slots, 128 bytes of shared memory. Clocks and
// memory are the ones of the A100, A40, Jetson Orin, L40S, H100, B200 and RTX PRO 6000.
constexpr Rates kRates[] = {
    {80, 2048, 47, 1.41, 1555}, {86, 1024, 32, 1.74, 696}, {87, 2048, 47, 1.3, 204},
    {89, 1024, 32, 2.52, 864},  {90, 2560, 0, 1.98, 3350}, {100, 2560, 0, 1.96, 8000},
    {120, 1024, 32, 2.6, 1792},
};

// 989 TFLOP/s of the H100 data sheet over 132 multiprocessors at 1.83 GHz: m64nNk16 in N / 2
// cycles.
constexpr double kWgmmaFlop = 4096;

const Rates& rates_of(jit::Arch arch) {
  const Rates* found = kRates;
  for (const Rates& rates : kRates) {
    if (rates.arch <= arch.number) found = &rates;
  }
  return *found;
}

// Whether a clock or a memory rate that a driver reports is plausible. Any other value is an error
// of the driver.
bool plausible(double value, double usual) { return value > usual / 16 && value < usual * 16; }

StepCycles step_cycles(const PipeDevice& device, const Pace& pace, const KernelWork& work,
                       double steps) {
  const double matrix_flop =
      (pace.products == Pace::Products::kWarpgroup ? device.wgmma_flop : device.matrix_flop) *
      pace.product_rate;
  return {.matrix = work.matrix_flop / steps / matrix_flop,
          .special = work.special_lanes / steps / device.special_lanes,
          .issue = work.warp_instructions / steps / device.issue_slots,
          .shared = work.shared_wavefronts / steps / device.shared_wavefronts,
          .l2 = (work.read_bytes + work.written_bytes) / steps / device.l2_bytes};
}

// The exponent of the norm if a scheduler may choose from `ways` warps, or steps of one warp. It is
// 1 for up to two, because one then multiplies while the other waits for the product, and `overlap`
// from four on.
double exponent(double overlap, double ways) {
  return 1 + (overlap - 1) * std::clamp(ways / 2 - 1, 0.0, 1.0);
}

// Cycles of a multiprocessor for one step of one CTA, while the warps of `together` CTAs fill one
// another's gaps. Products of warpgroups read shared memory themselves, so the slower of the
// product and the read counts. Products of warps get their operands by instructions, which are a
// pipe of their own.
double busy_cycles(const PipeDevice& device, const CtaShape& cta, const Pace& pace,
                   const KernelWork& work, double steps, const StepCycles& each, double together) {
  const double warps = std::max(1.0, together * cta.warps / device.schedulers);
  const double p = exponent(device.overlap, warps * pace.overlap);
  const auto power = [p](double cycles) { return std::pow(cycles, p); };
  const double products = pace.products == Pace::Products::kWarpgroup
                              ? power(std::max(each.matrix, each.shared))
                              : power(each.matrix) + power(each.shared);
  const double pipes = std::pow(products + power(each.special) + power(each.issue), 1 / p);
  const double barriers = pace.barriers.value_or(work.barriers / steps / cta.warps);
  return std::max(pipes + barriers * device.barrier_cycles / (warps * pace.overlap), each.l2);
}

// Cycles that a CTA waits for its copies in a step with `turn` cycles of work. With one stage V is
// copied during the scores and K during the rest, each about half of the step; with more stages
// whole tiles are copied during stages - 1 steps.
double late_cycles(const PipeDevice& device, const CtaShape& cta, double turn) {
  return cta.stages == 1 ? 2 * std::max(0.0, device.latency_cycles - turn / 2)
                         : std::max(0.0, device.latency_cycles - (cta.stages - 1) * turn);
}

// The limit of a kernel: memory, imbalance or latency if one of them clearly takes time that no
// pipe accounts for, else the busiest pipe.
Limit limit_of(const Prediction& made, double longest, double late, double step) {
  if (made.predicted_busy.back() > longest) return Limit::kMemory;
  if (made.predicted_imbalance > 1.25) return Limit::kImbalance;
  if (late > 0.25 * step) return Limit::kLatency;
  const auto most = std::max_element(made.predicted_busy.begin(), made.predicted_busy.end() - 1);
  return static_cast<Limit>(most - made.predicted_busy.begin());
}

// The counts if a CTA takes the same row of `heads` heads that see the same tiles.
TileCounts taken_together(TileCounts tiles, int heads) {
  tiles.copies /= heads;
  tiles.ctas /= heads;
  tiles.full_tiles /= heads;
  tiles.partial_tiles /= heads;
  return tiles;
}

// The device at another clock. Whatever takes a fixed time takes fewer cycles of a slower clock.
PipeDevice at_clock(PipeDevice device, double hertz) {
  const double slower = hertz / device.clock_hertz;
  device.memory_bytes /= slower;
  device.latency_cycles *= slower;
  device.launch_cycles *= slower;
  device.clock_hertz = hertz;
  return device;
}

}  // namespace

StepPace pace_steps(const PipeDevice& device, const CtaShape& cta, const Pace& pace,
                    const KernelWork& work, double steps, double together) {
  StepPace made;
  made.each = step_cycles(device, pace, work, steps);
  made.turn = together * busy_cycles(device, cta, pace, work, steps, made.each, together);
  made.late = late_cycles(device, cta, made.turn);
  // During the first step of a work only the other CTAs can fill the gaps.
  const double alone =
      std::max(made.each.matrix, made.each.shared) + made.each.special + made.each.issue;
  made.frame = pace.frame_latencies * device.latency_cycles +
               std::max(0.0, alone - made.turn) * cta.step_tiles;
  return made;
}

PipeDevice pipe_device(const device::DeviceInfo& info, const PipeConstants& constants) {
  PipeDevice device;
  device.arch = jit::arch_of_capability(info.major, info.minor);
  const Rates& rates = rates_of(device.arch);
  device.multiprocessors = std::max(1, info.multiprocessors);
  const double said = info.clock_kilohertz / 1e6;
  const double gigahertz = plausible(said, rates.gigahertz) ? said : rates.gigahertz;
  device.clock_hertz = 1e9 * gigahertz;
  device.loaded_clock_hertz =
      1e9 *
      (device.arch.number == 90 ? std::min(gigahertz, constants.loaded_gigahertz) : gigahertz);
  device.matrix_flop = rates.matrix_flop;
  device.wgmma_flop = device.arch.number == 90 ? kWgmmaFlop : 0;
  device.special_lanes = 16;
  device.issue_slots = 4;
  device.shared_wavefronts = 1;
  device.l2_bytes = rates.l2_bytes > 0 ? rates.l2_bytes : constants.l2_bytes;
  // Memory transfers twice per clock.
  const double memory = 2e-6 * info.memory_clock_kilohertz * info.memory_bus_bits / 8;
  const double gigabytes =
      plausible(memory, rates.memory_gigabytes) ? memory : rates.memory_gigabytes;
  device.memory_bytes = 1e9 * gigabytes * constants.memory_share / device.clock_hertz;
  device.latency_cycles = 1e-9 * constants.latency_nanoseconds * device.clock_hertz;
  device.overlap = constants.overlap;
  device.launch_cycles = 1e-6 * constants.launch_micros * device.clock_hertz;
  device.barrier_cycles = constants.barrier_cycles;
  device.max_threads = info.max_threads_per_multiprocessor;
  constexpr int kUsualCtas = 16;
  device.max_ctas =
      info.max_blocks_per_multiprocessor > 0 ? info.max_blocks_per_multiprocessor : kUsualCtas;
  device.registers = info.registers_per_multiprocessor;
  device.shared_bytes = info.shared_bytes_per_multiprocessor;
  device.shared_bytes_reserved = info.shared_bytes_reserved_per_block;
  return device;
}

PipeDevice pipe_device(const DeviceLimits& limits) {
  device::DeviceInfo info;
  info.major = limits.arch.number / 10;
  info.minor = limits.arch.number % 10;
  info.multiprocessors = limits.multiprocessors;
  info.max_threads_per_multiprocessor = 2048;
  info.registers_per_multiprocessor = 65536;
  info.shared_bytes_reserved_per_block = 1024;
  info.shared_bytes_per_multiprocessor = static_cast<int>(limits.shared_bytes_per_block) + 1024;
  info.clock_kilohertz = limits.clock_kilohertz;
  info.memory_clock_kilohertz = limits.memory_clock_kilohertz;
  info.memory_bus_bits = limits.memory_bus_bits;
  return pipe_device(info);
}

int resident_ctas(const PipeDevice& device, const KernelConfig& config, const Dims& dims,
                  int registers) {
  const Footprint taken = footprint(config, dims);
  if (registers == 0) registers = taken.predicted_registers;
  const int cta_threads = threads(config);
  const std::int64_t each = (registers + 7) / 8 * 8 * std::int64_t{cta_threads};
  const std::int64_t shared = taken.shared_bytes + device.shared_bytes_reserved;
  const std::int64_t held =
      std::min({device.registers / each, device.shared_bytes / shared,
                std::int64_t{device.max_threads / cta_threads}, std::int64_t{device.max_ctas}});
  return static_cast<int>(std::max<std::int64_t>(0, held));
}

const char* to_string(Limit limit) {
  switch (limit) {
    case Limit::kMatrix:
      return "tensor cores";
    case Limit::kSpecial:
      return "special functions";
    case Limit::kIssue:
      return "issue slots";
    case Limit::kShared:
      return "shared memory";
    case Limit::kL2:
      return "bytes from L2";
    case Limit::kMemory:
      return "bytes of memory";
    case Limit::kLatency:
      return "latency of copies";
    case Limit::kImbalance:
      return "imbalance";
    case Limit::kNothing:
      return "nothing";
  }
  return "unknown limit";
}

namespace {

// The prediction of a launch on a device whose clock does not change.
struct Pacing {
  TileCounts tiles;     // the tiles as CTAs take them
  double together = 1;  // CTAs that share the pipes of a multiprocessor
  double steps = 0;
  StepPace pace;
  Dealing dealing;
};

Pacing pacing_of(const PipeDevice& device, const KernelConfig& config, const Dims& dims,
                 const TileCounts& of_heads, const KernelWork& work, int resident) {
  const CtaShape cta = cta_shape(config);
  const Pace pace = family_of(config).pace(config);
  Pacing made;
  made.tiles = taken_together(of_heads, cta.heads);
  const TileCounts& tiles = made.tiles;
  // CTAs that share the pipes of a multiprocessor: the number that it holds, or fewer if there are
  // not enough CTAs for all multiprocessors.
  made.together = std::clamp(static_cast<double>(tiles.ctas) / device.multiprocessors, 1.0,
                             static_cast<double>(resident));
  // A step here is one tile, or one CTA if there are fewer tiles than CTAs. `work` includes what
  // each CTA does once, which must not be divided by a small number of tiles, or by 0.
  made.steps = static_cast<double>(std::max(tiles.tiles(), tiles.ctas));
  made.pace = pace_steps(device, cta, pace, work, made.steps, made.together);
  const std::int64_t groups = tiles.ctas / std::max<std::int64_t>(1, tiles.row_tiles);
  made.dealing = {.deal = pace.deal,
                  .slots = std::int64_t{device.multiprocessors} * resident,
                  .cluster = cta.cluster,
                  .set = family_of(config).persistent
                             ? groups_in_set({.dims = dims,
                                              .element_bytes = config.family->element_bytes,
                                              .seq_k = tiles.seq_k,
                                              .heads_per_kv = tiles.heads_per_kv,
                                              .group_heads = cta.heads,
                                              .groups = groups})
                             : 1,
                  .longest_first = pace.longest_first};
  if (pace.deal == Deal::kCounter) {
    // A set takes the bytes of K and V that its groups share. L2 is larger than a set may be, and
    // what is left of it is for the sets with a head start.
    constexpr double kHeldBytes = 48 << 20;
    const auto of_keys = static_cast<double>((dims.qk + dims.v) * config.family->element_bytes);
    const auto sharing =
        static_cast<double>(std::max<std::int64_t>(1, tiles.heads_per_kv / cta.heads));
    const double set_bytes = static_cast<double>(made.dealing.set) / sharing *
                             static_cast<double>(tiles.seq_k) * of_keys;
    made.dealing.held_sets = kHeldBytes / std::max(1.0, set_bytes);
    made.dealing.memory_tile =
        static_cast<double>(tiles.tile_columns) * of_keys / sharing / device.memory_bytes;
  }
  return made;
}

// Decides how works that may be drawn are dealt out, as far as `dealt` leaves it open, and sets the
// decision in the dealing.
void decide_dealing(const PipeDevice& device, Dealt dealt, Pacing* pacing) {
  Dealing& dealing = pacing->dealing;
  if (dealing.deal != Deal::kCounter) return;
  if (dealt != Dealt::kCountedOff) {
    dealing.head_start =
        choose_head_start(pacing->tiles, dealing, pacing->pace.frame, pacing->pace.step());
  }
  const bool draws = dealt == Dealt::kAsPays
                         ? drawing_pays(pacing->tiles, dealing, pacing->pace.frame,
                                        pacing->pace.step(), device.launch_cycles)
                         : dealt == Dealt::kDrawn;
  if (draws) return;
  dealing.deal = Deal::kStride;
  dealing.head_start = {};
}

// The prediction for a device whose clock does not change.
Prediction predict_at_clock(const PipeDevice& device, const KernelConfig& config, const Dims& dims,
                            const TileCounts& of_heads, const KernelWork& work, double bytes,
                            int registers, Dealt dealt, const HeadStart& head_start) {
  Prediction made;
  if (of_heads.ctas == 0) return made;
  made.predicted_resident = resident_ctas(device, config, dims, registers);
  if (made.predicted_resident == 0) {
    made.predicted_cycles = made.predicted_micros = std::numeric_limits<double>::infinity();
    return made;
  }
  Pacing pacing = pacing_of(device, config, dims, of_heads, work, made.predicted_resident);
  const TileCounts& tiles = pacing.tiles;
  const double multiprocessors = device.multiprocessors;
  made.predicted_waves =
      static_cast<double>(tiles.ctas) / static_cast<double>(pacing.dealing.slots);
  if (dealt == Dealt::kDrawn) {
    pacing.dealing.head_start = head_start;
  } else {
    decide_dealing(device, dealt, &pacing);
  }
  // Setting the counter takes about as long as a launch.
  const double clear = pacing.dealing.deal == Deal::kCounter ? device.launch_cycles : 0;
  const double longest = makespan(tiles, pacing.dealing, pacing.pace.frame, pacing.pace.step());
  // The mean counts the CTAs that share the pipes in `step` as running at a time. The number of
  // slots only limits how many may start. If slots stay empty, `together` is the CTAs of a
  // multiprocessor, and imbalance compares the longest CTA with the mean CTA. With fewer CTAs than
  // multiprocessors, the idle multiprocessors count too.
  const double mean = (static_cast<double>(tiles.ctas) * pacing.pace.frame +
                       static_cast<double>(tiles.tiles()) * pacing.pace.step()) /
                      (multiprocessors * pacing.together);
  const double memory = bytes / device.memory_bytes;
  made.predicted_imbalance = mean > 0 ? longest / mean : 1;
  made.predicted_cycles = std::max(longest, memory) + device.launch_cycles + clear;
  made.predicted_micros = made.predicted_cycles / device.clock_hertz * 1e6;
  made.predicted_hertz = device.clock_hertz;
  const StepCycles& each = pacing.pace.each;
  const double per_multiprocessor = pacing.steps / multiprocessors;
  made.predicted_busy = {each.matrix * per_multiprocessor, each.special * per_multiprocessor,
                         each.issue * per_multiprocessor,  each.shared * per_multiprocessor,
                         each.l2 * per_multiprocessor,     memory};
  made.predicted_limit = limit_of(made, longest, pacing.pace.late, pacing.pace.step());
  return made;
}

}  // namespace

Prediction predict(const PipeDevice& device, const KernelConfig& config, const Dims& dims,
                   const TileCounts& tiles, const KernelWork& work, double bytes, int registers,
                   Dealt dealt, const HeadStart& head_start) {
  const Prediction fast =
      predict_at_clock(device, config, dims, tiles, work, bytes, registers, dealt, head_start);
  if (device.loaded_clock_hertz >= device.clock_hertz || !(fast.predicted_cycles > 0) ||
      std::isinf(fast.predicted_cycles)) {
    return fast;
  }
  // The use of the tensor cores at their full rate lowers the clock. A lower clock in turn changes
  // that use a little.
  const bool full = family_of(config).pace(config).products == Pace::Products::kWarpgroup;
  const double rate =
      full ? 1 : device.matrix_flop / std::max(device.matrix_flop, device.wgmma_flop);
  const double use = std::min(1.0, fast.predicted_busy.front() / fast.predicted_cycles * rate);
  const double hertz = device.clock_hertz - use * (device.clock_hertz - device.loaded_clock_hertz);
  Prediction made = predict_at_clock(at_clock(device, hertz), config, dims, tiles, work, bytes,
                                     registers, dealt, head_start);
  made.predicted_hertz = hertz;
  const double longer = device.clock_hertz / hertz;
  made.predicted_cycles *= longer;
  for (double& busy : made.predicted_busy) busy *= longer;
  return made;
}

DealtWorks deal_works(const PipeDevice& device, const KernelConfig& config, const Dims& dims,
                      const TileCounts& tiles, const KernelWork& work, Dealt dealt) {
  if (tiles.ctas == 0) return {};
  const int resident = std::max(1, resident_ctas(device, config, dims));
  Pacing pacing = pacing_of(device, config, dims, tiles, work, resident);
  decide_dealing(device, dealt, &pacing);
  return {.drawn = pacing.dealing.deal == Deal::kCounter,
          .head_start = pacing.dealing.head_start,
          .frame_cycles = pacing.pace.frame,
          .tile_cycles = pacing.pace.step()};
}

PredictedRange predict_range(const device::DeviceInfo& info, double micros,
                             const std::function<double(const PipeDevice& device)>& predicted) {
  if (micros == 0 || !std::isfinite(micros)) return {micros, micros};
  double below = 0, above = 0;  // sums of squared logarithms
  for (const PipeConstant& constant : pipe_constants()) {
    double least = 0, most = 0;
    for (const double end : {constant.least, constant.most}) {
      PipeConstants constants;
      constants.*constant.value = end;
      const double effect = std::log(predicted(pipe_device(info, constants)) / micros);
      least = std::min(least, effect);
      most = std::max(most, effect);
    }
    below += least * least;
    above += most * most;
  }
  return {micros * std::exp(-std::sqrt(below)), micros * std::exp(std::sqrt(above))};
}

double merge_cycles(const PipeDevice& device, const KvSplit& split, const Problem& problem,
                    std::int64_t tile_rows) {
  // The states of all slots are written once and read once.
  const auto bytes = static_cast<double>(
      2 * split.workspace_bytes(tile_rows, problem.dim_v, problem.heads * problem.batch));
  return device.launch_cycles + bytes / device.memory_bytes;
}

}  // namespace annulus::attention
