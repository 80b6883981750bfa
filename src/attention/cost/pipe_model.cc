#include "attention/cost/pipe_model.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <queue>
#include <vector>

#include "attention/kernels/family.h"

namespace annulus::attention {
namespace {

// Rates of one multiprocessor per cycle.
struct Rates {
  int arch;
  double matrix_flop;
  double l2_bytes;
};

// matrix_flop: the dense 16-bit peak over multiprocessors and boost clock of the data sheets (A100
// 312 TFLOP/s, 108 at 1.41 GHz; A40 150 TFLOP/s, 84 at 1.74 GHz). On sm_90 mma.sync reaches about
// 5/8 of the 4096 that wgmma does (Luo et al., arXiv 2402.13499). l2_bytes: 5120 bytes a cycle for
// 108 multiprocessors of the A100 (its white paper); public microbenchmarks of the H100 lie between
// 5.5 and 7 TB/s, 24 to 30 bytes a cycle of each of 132. The other rates are the same on all:
// 16 special-function results, 4 issue slots, 128 bytes of shared memory.
constexpr Rates kRates[] = {
    {80, 2048, 47}, {86, 1024, 32},  {87, 2048, 47},  {89, 1024, 32},
    {90, 2560, 27}, {100, 2560, 27}, {120, 1024, 32},
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

// Cycles of a barrier at which no warp is late, and of a launch with its first and last accesses.
// Like the 500 cycles of latency_cycles, these are estimates of the usual size; no measurement of
// ours stands behind them yet (docs/gpu-backlog.md).
constexpr double kBarrierCycles = 30;
constexpr double kLaunchCycles = 3000;

// The cycles until all CTAs have ended, if each CTA goes, in launch order, to the slot that is free
// first. A CTA takes `frame` cycles, and `step` cycles for each tile. Above kMaxNamedRows CTAs the
// lengths of rows need not be known (tile_counts.h): the estimate is then the mean of the slots
// plus half of the longest CTA, and at least the longest CTA.
double makespan(const TileCounts& tiles, std::int64_t slots, double frame, double step) {
  const auto distinct =
      tiles.row_tiles > 0 ? static_cast<std::int64_t>(tiles.lengths.size()) / tiles.row_tiles : 0;
  const double total =
      static_cast<double>(tiles.ctas) * frame + static_cast<double>(tiles.tiles()) * step;
  const double longest = frame + static_cast<double>(tiles.longest_row) * step;
  if (tiles.ctas > kMaxNamedRows) {
    const double share = 1.0 / static_cast<double>(slots);
    return std::max(longest, total * share + longest * (1.0 - share) / 2);
  }
  // Each head's rows are launched longest first, one head after another. `free` has the times at
  // which used slots become free; slots that were never used are free from the start.
  std::vector<std::vector<std::int32_t>> heads(static_cast<std::size_t>(distinct));
  for (std::int64_t head = 0; head < distinct; ++head) {
    const auto begin = tiles.lengths.begin() + head * tiles.row_tiles;
    auto& lengths = heads[static_cast<std::size_t>(head)];
    lengths.assign(begin, begin + tiles.row_tiles);
    std::ranges::sort(lengths, std::greater<>());
  }
  std::priority_queue<double, std::vector<double>, std::greater<>> free;
  double end = 0;
  for (std::int64_t copy = 0; copy < tiles.copies; ++copy) {
    for (const auto& lengths : heads) {
      for (const std::int32_t length : lengths) {
        double begin = 0;
        if (static_cast<std::int64_t>(free.size()) == slots) {
          begin = free.top();
          free.pop();
        }
        free.push(begin + frame + length * step);
        end = std::max(end, begin + frame + length * step);
      }
    }
  }
  return end;
}

// Cycles that each pipe of one multiprocessor is busy for one step of one CTA.
struct StepCycles {
  double matrix, special, issue, shared, l2;

  double largest() const { return std::max({matrix, special, issue, shared, l2}); }
};

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

// Cycles of a multiprocessor for one step of one CTA, while the warps of `together` CTAs fill one
// another's gaps: the inverse of the throughput bound in pipe_model.h.
double busy_cycles(const PipeDevice& device, const CtaShape& cta, const Pace& pace,
                   const KernelWork& work, double steps, const StepCycles& each, double together) {
  const double barriers =
      pace.barriers.value_or(work.barriers / steps / cta.warps) * kBarrierCycles;
  const double warps = std::max(1.0, together * cta.warps / device.schedulers) * pace.overlap;
  const double alone =
      std::max(each.matrix, each.shared) + std::max(each.special, each.issue) + barriers;
  const double largest = each.largest();
  return std::max(largest, (alone + (warps - 1) * largest) / warps);
}

// Cycles that a CTA waits for its copies in a step with `turn` cycles of work. With one stage V is
// copied during the scores and K during the rest, each about half of the step; with more stages
// whole tiles are copied during stages - 1 steps.
double late_cycles(const PipeDevice& device, const CtaShape& cta, double turn) {
  return cta.stages == 1 ? 2 * std::max(0.0, device.latency_cycles - turn / 2)
                         : std::max(0.0, device.latency_cycles - (cta.stages - 1) * turn);
}

// What a kernel is bound by: memory, imbalance or latency if one of them clearly takes time that no
// pipe accounts for, else the busiest pipe.
Limit limit_of(const Prediction& made, double longest, double late, double step) {
  if (made.predicted_busy.back() > longest) return Limit::kMemory;
  if (made.predicted_imbalance > 1.25) return Limit::kImbalance;
  if (late > 0.25 * step) return Limit::kLatency;
  const auto most = std::max_element(made.predicted_busy.begin(), made.predicted_busy.end() - 1);
  return static_cast<Limit>(most - made.predicted_busy.begin());
}

// The counts if a CTA takes the same row of `heads` heads, which see the same tiles.
TileCounts taken_together(TileCounts tiles, int heads) {
  tiles.copies /= heads;
  tiles.ctas /= heads;
  tiles.full_tiles /= heads;
  tiles.partial_tiles /= heads;
  return tiles;
}

}  // namespace

// Values that the driver does not tell are replaced by usual ones: a clock of 1.5 GHz, 1000 bytes
// of memory traffic in a cycle, 16 CTAs.
PipeDevice pipe_device(const device::DeviceInfo& info) {
  PipeDevice device;
  device.arch = jit::arch_of_capability(info.major, info.minor);
  const Rates& rates = rates_of(device.arch);
  device.multiprocessors = std::max(1, info.multiprocessors);
  device.clock_hertz = info.clock_kilohertz > 0 ? 1e3 * info.clock_kilohertz : 1.5e9;
  device.matrix_flop = rates.matrix_flop;
  device.wgmma_flop = device.arch.number == 90 ? kWgmmaFlop : 0;
  device.special_lanes = 16;
  device.issue_slots = 4;
  device.shared_wavefronts = 1;
  device.l2_bytes = rates.l2_bytes;
  // Memory transfers twice per clock, and large copies reach nine tenths of the peak.
  const double memory = 2e3 * info.memory_clock_kilohertz * info.memory_bus_bits / 8 * 0.9;
  device.memory_bytes = memory > 0 ? memory / device.clock_hertz : 1000;
  device.latency_cycles = 500;
  device.max_threads = info.max_threads_per_multiprocessor;
  device.max_ctas =
      info.max_blocks_per_multiprocessor > 0 ? info.max_blocks_per_multiprocessor : 16;
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
  return pipe_device(info);
}

int resident_ctas(const PipeDevice& device, const KernelConfig& config, const Dims& dims,
                  int registers) {
  const Footprint taken = footprint(config, dims);
  if (registers == 0) registers = taken.predicted_registers;
  const int cta_threads = threads(config);
  const std::int64_t each = (registers + 7) / 8 * 8 * std::int64_t{cta_threads};
  const std::int64_t shared = taken.shared_bytes + device.shared_bytes_reserved;
  return static_cast<int>(
      std::min({device.registers / each, device.shared_bytes / shared,
                std::int64_t{device.max_threads / cta_threads}, std::int64_t{device.max_ctas}}));
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

Prediction predict(const PipeDevice& device, const KernelConfig& config, const Dims& dims,
                   const TileCounts& of_heads, const KernelWork& work, double bytes,
                   int registers) {
  const CtaShape cta = cta_shape(config);
  const TileCounts tiles = taken_together(of_heads, cta.heads);
  Prediction made;
  if (tiles.ctas == 0) return made;
  made.predicted_resident = resident_ctas(device, config, dims, registers);
  if (made.predicted_resident == 0) {
    made.predicted_cycles = made.predicted_micros = std::numeric_limits<double>::infinity();
    return made;
  }
  const Pace pace = config.family->pace(config);
  const double multiprocessors = device.multiprocessors;
  const std::int64_t slots = std::int64_t{device.multiprocessors} * made.predicted_resident;
  made.predicted_waves = static_cast<double>(tiles.ctas) / static_cast<double>(slots);
  // CTAs that share the pipes of a multiprocessor: as many as it holds, or fewer if there are not
  // enough CTAs for all multiprocessors.
  const double together = std::clamp(static_cast<double>(tiles.ctas) / multiprocessors, 1.0,
                                     static_cast<double>(made.predicted_resident));

  // A step here is one tile, or a CTA where there are fewer tiles than CTAs: `work` includes what
  // each CTA does once, which must not be divided among a few tiles, nor by 0 where there is none.
  // `turn` is the time in which each of the `together` CTAs does one step.
  const double steps = static_cast<double>(std::max(tiles.tiles(), tiles.ctas));
  const StepCycles each = step_cycles(device, pace, work, steps);
  const double turn = together * busy_cycles(device, cta, pace, work, steps, each, together);
  const double late = late_cycles(device, cta, turn);
  const double step = turn + late;

  const double frame = pace.frame_latencies * device.latency_cycles;
  const double longest = makespan(tiles, slots, frame, step);
  // The mean has as many CTAs at a time as share the pipes in `step`; slots only say how many may
  // start. If slots stay empty, `together` is the CTAs of a multiprocessor, and imbalance compares
  // the longest CTA with the mean CTA. With fewer CTAs than multiprocessors, idle ones count too.
  const double mean =
      (static_cast<double>(tiles.ctas) * frame + static_cast<double>(tiles.tiles()) * step) /
      (multiprocessors * together);
  const double memory = bytes / device.memory_bytes;
  made.predicted_imbalance = mean > 0 ? longest / mean : 1;
  made.predicted_cycles = std::max(longest, memory) + kLaunchCycles;
  made.predicted_micros = made.predicted_cycles / device.clock_hertz * 1e6;
  const double per_multiprocessor = steps / multiprocessors;
  made.predicted_busy = {each.matrix * per_multiprocessor, each.special * per_multiprocessor,
                         each.issue * per_multiprocessor,  each.shared * per_multiprocessor,
                         each.l2 * per_multiprocessor,     memory};
  made.predicted_limit = limit_of(made, longest, late, step);
  return made;
}

double merge_cycles(const PipeDevice& device, const KvSplit& split, const Problem& problem,
                    std::int64_t tile_rows) {
  // The states of all slots are written once and read once.
  const auto bytes = static_cast<double>(
      2 * split.workspace_bytes(tile_rows, problem.dim_v, problem.heads * problem.batch));
  return kLaunchCycles + bytes / device.memory_bytes;
}

}  // namespace annulus::attention
