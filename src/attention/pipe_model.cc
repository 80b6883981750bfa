#include "attention/pipe_model.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <queue>
#include <vector>

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

// Cycles: of a barrier that nobody is late for, and of a launch with its first and last accesses.
constexpr double kBarrierCycles = 30;
constexpr double kLaunchCycles = 3000;
// A CTA's own beginning and end, in times of the latency: its list, its first copies, its output.
constexpr double kFrameLatencies = 4;
// The same where the copies of the next row have begun.
constexpr double kPersistentFrameLatencies = 2;

// Time until all CTAs have ended when each goes, in launch order, to the slot that is free first.
double makespan(const TileCounts& tiles, std::int64_t slots, double frame, double step) {
  const auto distinct =
      tiles.row_tiles > 0 ? static_cast<std::int64_t>(tiles.lengths.size()) / tiles.row_tiles : 0;
  const double total =
      static_cast<double>(tiles.ctas) * frame + static_cast<double>(tiles.tiles()) * step;
  const double longest = frame + static_cast<double>(tiles.longest_row) * step;
  if (tiles.ctas > kMostNamedRows) {  // the mean and the longest row say enough
    const double share = 1.0 / static_cast<double>(slots);
    return std::max(longest, total * share + longest * (1.0 - share) / 2);
  }
  // Rows are launched longest first.
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

// Where a CTA takes the same row of several heads, which see the same tiles.
TileCounts taken_together(TileCounts tiles, int heads) {
  tiles.copies /= heads;
  tiles.ctas /= heads;
  tiles.full_tiles /= heads;
  tiles.partial_tiles /= heads;
  return tiles;
}

}  // namespace

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
  // Twice per clock, and nine tenths of the peak: what large copies reach.
  const double memory = 2e3 * info.memory_clock_kilohertz * info.memory_bus_bits / 8 * 0.9;
  device.memory_bytes = memory > 0 ? memory / device.clock_hertz : 1000;
  device.latency_cycles = 500;
  device.most_threads = info.max_threads_per_multiprocessor;
  device.most_ctas =
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

int most_registers(const KernelConfig& config) {
  constexpr int kRegisterFile = 65536;
  return std::min(255, kRegisterFile / (threads(config) * config.resident) / 8 * 8);
}

int least_registers(const KernelConfig& config, const Dims& dims) {
  return static_cast<int>(std::min<std::int64_t>(255, fragment_registers(config, dims) + 48));
}

int predicted_registers(const KernelConfig& config, const Dims& dims) {
  // Fitted to what ptxas took for the whole search space at head dims 64 and 128.
  const int scores = config.tile_rows / (config.warps * 16) * config.tile_columns;
  const auto wanted = static_cast<int>(fragment_registers(config, dims)) + 45 + scores * 2 / 5 -
                      (config.query_in_registers ? 10 : 0);
  return std::min(wanted, most_registers(config));
}

int resident_ctas(const PipeDevice& device, const KernelConfig& config, const Dims& dims,
                  int registers) {
  if (registers == 0) registers = predicted_registers(config, dims);
  if (is_wgmma(config.family)) {
    // Its warps take all registers that there are.
    return shared_bytes(config, dims) + device.shared_bytes_reserved <= device.shared_bytes ? 1 : 0;
  }
  const std::int64_t each = (registers + 7) / 8 * 8 * std::int64_t{threads(config)};
  const std::int64_t shared = shared_bytes(config, dims) + device.shared_bytes_reserved;
  return static_cast<int>(std::min({device.registers / each, device.shared_bytes / shared,
                                    std::int64_t{device.most_threads / threads(config)},
                                    std::int64_t{device.most_ctas}}));
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
  const TileCounts tiles = taken_together(of_heads, config.heads);
  Prediction made;
  if (tiles.ctas == 0) return made;
  made.predicted_resident = resident_ctas(device, config, dims, registers);
  if (made.predicted_resident == 0) {
    made.predicted_cycles = made.predicted_micros = std::numeric_limits<double>::infinity();
    return made;
  }
  const bool wgmma = is_wgmma(config.family);
  const double multiprocessors = device.multiprocessors;
  const std::int64_t slots = std::int64_t{device.multiprocessors} * made.predicted_resident;
  made.predicted_waves = static_cast<double>(tiles.ctas) / static_cast<double>(slots);

  // Cycles of one multiprocessor for one step of one CTA; where no row has a tile, for one CTA.
  const double steps = static_cast<double>(std::max(tiles.tiles(), tiles.ctas));
  // Products of 8-bit elements take half the time.
  const double matrix_flop =
      (wgmma ? device.wgmma_flop : device.matrix_flop) * (config.family == Family::kWgmma8 ? 2 : 1);
  const double matrix = work.matrix_flop / steps / matrix_flop;
  const double special = work.special_lanes / steps / device.special_lanes;
  const double issue = work.warp_instructions / steps / device.issue_slots;
  const double shared = work.shared_wavefronts / steps / device.shared_wavefronts;
  const double l2 = (work.read_bytes + work.written_bytes) / steps / device.l2_bytes;
  const double memory = bytes / device.memory_bytes;
  // Of all that counts as one in the wgmma family, a warp stands still for its turn.
  const double barriers =
      (wgmma ? 1.0 / config.blocks : work.barriers / steps / config.warps) * kBarrierCycles;

  // Warps of a scheduler, with the CTAs that there are to share among the multiprocessors.
  const double together = std::clamp(static_cast<double>(tiles.ctas) / multiprocessors, 1.0,
                                     static_cast<double>(made.predicted_resident));
  const double warps = std::max(1.0, together * config.warps / device.schedulers) * (wgmma ? 2 : 1);
  const double alone = std::max(matrix, shared) + std::max(special, issue) + barriers;
  const double largest = std::max({matrix, special, issue, shared, l2});
  const double busy = std::max(largest, (alone + (warps - 1) * largest) / warps);

  // What a CTA waits for its copies in a step. With one stage the values come beside the scores and
  // the keys beside the rest; with more, whole tiles come beside stages - 1 steps.
  const double turn = together * busy;
  const double late = config.stages == 1
                          ? 2 * std::max(0.0, device.latency_cycles - turn / 2)
                          : std::max(0.0, device.latency_cycles - (config.stages - 1) * turn);
  const double step = turn + late;

  const double frame =
      (wgmma ? kPersistentFrameLatencies : kFrameLatencies) * device.latency_cycles;
  const double longest = makespan(tiles, slots, frame, step);
  const double mean =
      (static_cast<double>(tiles.ctas) * frame + static_cast<double>(tiles.tiles()) * step) /
      (multiprocessors * together);
  made.predicted_imbalance = mean > 0 ? longest / mean : 1;
  made.predicted_cycles = std::max(longest, memory) + kLaunchCycles;
  made.predicted_micros = made.predicted_cycles / device.clock_hertz * 1e6;
  const double per_multiprocessor = steps / multiprocessors;
  made.predicted_busy = {matrix * per_multiprocessor, special * per_multiprocessor,
                         issue * per_multiprocessor,  shared * per_multiprocessor,
                         l2 * per_multiprocessor,     memory};

  if (memory > longest) {
    made.predicted_limit = Limit::kMemory;
  } else if (made.predicted_imbalance > 1.25) {
    made.predicted_limit = Limit::kImbalance;
  } else if (late > 0.25 * step) {
    made.predicted_limit = Limit::kLatency;
  } else {
    const auto most = std::max_element(made.predicted_busy.begin(), made.predicted_busy.end() - 1);
    made.predicted_limit = static_cast<Limit>(most - made.predicted_busy.begin());
  }
  return made;
}

double merge_cycles(const PipeDevice& device, const RowSplit& split, const Problem& problem,
                    std::int64_t tile_rows) {
  // States are written and read once.
  const auto bytes = static_cast<double>(
      2 * split.workspace_bytes(tile_rows, problem.dim_v, problem.heads * problem.batch));
  return kLaunchCycles + bytes / device.memory_bytes;
}

Prediction predict(const PipeDevice& device, const LaunchPlan& plan) {
  const bool split = !plan.split.empty();
  const TileCounts tiles =
      split ? count_parts(*plan.tiles, plan.split, plan.problem) : count_tiles(plan);
  const KernelFeatures features = features_of(plan.problem, plan.placement, plan.mask);
  Prediction made = predict(device, plan.config, features.dims, tiles,
                            estimate_work(plan.config, features, tiles), least_bytes(plan.problem));
  if (split) {
    made.predicted_cycles += merge_cycles(device, plan.split, plan.problem, tiles.tile_rows);
    made.predicted_micros = made.predicted_cycles / device.clock_hertz * 1e6;
  }
  return made;
}

}  // namespace annulus::attention
