#include "batch/batch_cost.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "base/math.h"

namespace annulus::batch {
namespace {

using attention::Dims;
using attention::KernelWork;
using attention::Pace;
using attention::PipeDevice;

// The time of a pause of a CTA, from one work to the first keys of the next, in latencies of
// PipeDevice. Four loads depend on one another: the record of the part, its tile of rows, the
// pages, and the keys. The number is fitted to an H200, where a second part for each CTA of a step
// of 32 requests costs 5 to 6 us, which is more than four latencies.
constexpr double kPauseLatencies = 12;
// CTAs that begin together also pause together between their first works, and the memory is idle
// during these pauses. Later the CTAs pause at different times. The number of simultaneous pauses
// is fitted to the same H200, where 16 works for each CTA cost about five pauses.
constexpr double kPausesTogether = 5;
// The loads that depend on one another before combine_parts loads acc of a row's parts: the header,
// the number of the row, the row, and its maxima and sums.
constexpr double kJoinLoads = 4;

// The share of one warp in a tile of keys.
struct WarpStep {
  double copies;    // copies of 16 bytes for each lane, and loads of four 8 x 8 fragments
  double passes;    // passes over the rows of K or V; a lane copies a part of one row in each
  double products;  // mma.sync
  double elements;  // scores of a lane
  double query_fragments;  // loads of Q, if Q is not in registers
};

WarpStep warp_step(const BatchConfig& config, const Dims& dims) {
  const double keys = static_cast<double>(config.tile_columns) / config.warps;
  const auto both = static_cast<double>(dims.qk + dims.v);
  // Eight lanes copy a row if its bytes are a multiple of 128, else four.
  const double lanes_of_row = dims.qk % 64 == 0 ? 8 : 4;
  return {
      .copies = keys * both / 256,
      .passes = keys * lanes_of_row / 32,
      .products = keys * both / 128,
      .elements = keys / 2,
      .query_fragments = config.query_in_registers ? 0 : static_cast<double>(dims.qk) / 16,
  };
}

// The works of a step for one column of heads, before they are dealt out.
struct Works {
  struct Last {
    std::int64_t tiles, keys, rows;  // rows of (query, head)
    bool joined;
  };
  std::vector<Last> last;        // the last part of each tile of rows, the longest first
  std::int64_t full = 0;         // parts of full length, which come before them
  std::int64_t full_rows = 0;    // rows of the full parts
  std::int64_t joined = 0;       // tiles of rows with several parts
  std::int64_t joined_rows = 0;  // rows of all parts of these tiles
  std::int64_t max_parts = 1;
  std::int64_t max_rows = 0;  // the most rows of a tile with several parts

  std::int64_t count() const { return full + std::ssize(last); }
};

Works works_of(const ClassPlan& plan, std::span<const StepRequest> requests) {
  Works made;
  const std::int64_t columns = plan.config.tile_columns;
  const std::int64_t part_tiles = base::ceil_div(plan.part_keys, columns);
  for (const StepRequest& request : requests) {
    const std::int64_t tiles = base::ceil_div(request.keys, columns);
    const std::int64_t parts = std::max<std::int64_t>(1, base::ceil_div(tiles, part_tiles));
    const std::int64_t last_tiles = tiles - (parts - 1) * part_tiles;
    const std::int64_t last_keys = request.keys - (parts - 1) * part_tiles * columns;
    for (std::int64_t first = 0; first < request.queries; first += plan.packing.tile_queries) {
      const std::int64_t rows =
          plan.packing.tile_heads * std::min(plan.packing.tile_queries, request.queries - first);
      made.full += parts - 1;
      made.full_rows += (parts - 1) * rows;
      made.last.push_back({last_tiles, last_keys, rows, parts > 1});
      if (parts == 1) continue;
      ++made.joined;
      made.joined_rows += parts * rows;
      made.max_parts = std::max(made.max_parts, parts);
      made.max_rows = std::max(made.max_rows, rows);
    }
  }
  // Sorts lengths into bins, as prepare_batch does.
  const auto bin = [&](const Works::Last& of) {
    return of.tiles * (kernels::kPartBins - 1) / part_tiles;
  };
  std::ranges::stable_sort(made.last,
                           [&](const auto& a, const auto& b) { return bin(a) > bin(b); });
  return made;
}

// The work of each CTA.
struct Load {
  double works = 0, steps = 0, bytes = 0;
};

// Bytes of a row of K and V, of a row of Q, of a row of O, and of a row of a part's state.
struct RowBytes {
  double keys, query, out, state;
};

// Deals out the works: CTA i takes works i, i + n, and so on, and parts of full length come first.
std::vector<Load> deal_out(const ClassPlan& plan, const Works& works, const RowBytes& bytes) {
  std::vector<Load> loads(static_cast<std::size_t>(plan.ctas));
  const std::int64_t columns = plan.packing.columns;
  const std::int64_t part_tiles =
      base::ceil_div(plan.part_keys, std::int64_t{plan.config.tile_columns});
  const std::int64_t full = works.full * columns;
  const double rows =
      full > 0 ? static_cast<double>(works.full_rows) / static_cast<double>(works.full) : 0;
  const double full_bytes =
      static_cast<double>(part_tiles * plan.config.tile_columns) * bytes.keys +
      rows * (bytes.query + bytes.state);
  for (std::int64_t i = 0; i < plan.ctas; ++i) {
    const auto count = static_cast<double>(full / plan.ctas + (i < full % plan.ctas ? 1 : 0));
    loads[static_cast<std::size_t>(i)] = {count, count * static_cast<double>(part_tiles),
                                          count * full_bytes};
  }
  std::int64_t at = full;
  for (const Works::Last& last : works.last) {
    const double of_one =
        static_cast<double>(last.keys) * bytes.keys +
        static_cast<double>(last.rows) * (bytes.query + (last.joined ? bytes.state : bytes.out));
    for (std::int64_t column = 0; column < columns; ++column, ++at) {
      Load& load = loads[static_cast<std::size_t>(at % plan.ctas)];
      ++load.works;
      load.steps += static_cast<double>(last.tiles);
      load.bytes += of_one;
    }
  }
  return loads;
}

// Cycles until all CTAs have ended. CTAs share the bandwidth of the device's memory, if together
// they need more than that. The pause in front of a CTA's first work is not included.
double cycles_of(const PipeDevice& device, const std::vector<Load>& loads, double pause,
                 double step) {
  struct Alone {
    double cycles, rate;
  };
  std::vector<Alone> alone;
  double asked = 0, most_together = 0;
  for (const Load& load : loads) {
    if (load.works == 0) continue;
    const double pauses = load.works - 1;
    const double together = std::min(pauses, kPausesTogether);
    most_together = std::max(most_together, together);
    const double cycles = std::max(1.0, (pauses - together) * pause + load.steps * step);
    alone.push_back({cycles, load.bytes / cycles});
    asked += alone.back().rate;
  }
  std::ranges::sort(alone, {}, &Alone::cycles);
  double cycles = most_together * pause, done = 0;
  for (const Alone& of : alone) {
    cycles += (of.cycles - done) * std::max(1.0, asked / device.memory_bytes);
    done = of.cycles;
    asked -= of.rate;
  }
  return cycles;
}

// Cycles of combine_parts without the cycles of its launch. A CTA divides its threads among a few
// rows, joins these rows at the same time, and then takes the next rows.
double join_cycles(const PipeDevice& device, const ClassPlan& plan, const Works& works,
                   const RowBytes& bytes, std::int64_t dim_v) {
  if (works.joined == 0) return 0;
  const std::int64_t row_threads = kernels::combine_row_threads(static_cast<int>(dim_v));
  const std::int64_t loads = base::ceil_div(works.max_parts, std::int64_t{kernels::kCombineParts}) *
                             (dim_v / (4 * row_threads));
  const double chain = kJoinLoads + static_cast<double>(loads);
  const std::int64_t columns = plan.packing.columns;
  const std::int64_t groups =
      base::ceil_div(works.max_rows, kernels::kCombineThreads / row_threads);
  const auto waves =
      static_cast<double>(base::ceil_div(works.joined * groups * columns, plan.ctas));
  return waves * chain * device.latency_cycles +
         static_cast<double>(works.joined_rows * columns) * bytes.state / device.memory_bytes;
}

// Cycles of prepare_batch: its loads that depend on one another. These are loads of the numbers of
// requests, of the search for a tile's request, of the forms of the pattern, and of the places of
// parts; each is repeated for every kPrepareThreads entries.
double prepare_cycles(const PipeDevice& device, std::int64_t requests, std::int64_t rows) {
  const auto passes = [](std::int64_t n) {
    return static_cast<double>(base::ceil_div(n, std::int64_t{kernels::kPrepareThreads}));
  };
  const double search = std::bit_width(static_cast<std::uint64_t>(requests));
  const double loads = 3 * passes(requests) + (search + 5) * passes(rows);
  return device.launch_cycles + loads * device.latency_cycles;
}

}  // namespace

KernelWork decode_tile_work(const KernelConfig& any, const Dims& dims) {
  const BatchConfig config = batch_config(any);
  const WarpStep step = warp_step(config, dims);
  const double warps = config.warps;
  const double bytes = warps * step.copies * 512;
  KernelWork work;
  work.matrix_flop = warps * step.products * (2 * 16 * 8 * 16);
  work.special_lanes = warps * 32 * step.elements;
  work.shared_wavefronts = 2 * bytes / 128 + warps * 4 * step.query_fragments;
  work.read_bytes = bytes;
  // Each row of a copy takes its address and the test whether it exists; each copy and each product
  // takes one instruction; each fragment takes its load and an address. The first number is for the
  // loop, the look-up of pages and the two rows of a lane.
  work.warp_instructions = warps * (123 + 8 * step.passes + step.copies + step.products +
                                    2 * (step.copies + step.query_fragments) + 5.3 * step.elements);
  return work;
}

KernelWork decode_part_work(const KernelConfig& any, const Dims& dims, std::int64_t rows) {
  const BatchConfig config = batch_config(any);
  const auto v = static_cast<double>(dims.v);
  KernelWork work;
  work.warp_instructions = config.warps * (350 + 2.3 * v + 20 * (config.stages - 2)) +
                           static_cast<double>(rows) * (16 + v / 2);
  return work;
}

StepPrediction predict_step(const PipeDevice& device, const BatchProblem& problem,
                            const ClassPlan& plan, std::span<const StepRequest> requests,
                            double element_bytes) {
  StepPrediction made;
  const Dims dims{problem.dim_qk, problem.dim_v};
  const Works works = works_of(plan, requests);
  const std::int64_t columns = plan.packing.columns;
  const auto micros = [&](double cycles) { return cycles / device.clock_hertz * 1e6; };
  made.launch_micros = micros((plan.joins ? 2 : 1) * device.launch_cycles);
  made.predicted_prepare_micros =
      micros(prepare_cycles(device, std::ssize(requests), std::ssize(works.last)));
  made.predicted_micros = made.launch_micros;
  if (works.last.empty()) return made;

  // The pace of a step, and the cycles of a part in addition to its steps.
  const auto busy = static_cast<double>(std::min(plan.ctas, works.count() * columns));
  const double together =
      std::clamp(busy / device.multiprocessors, 1.0,
                 static_cast<double>(attention::cta_shape(plan.config).resident));
  KernelWork tile = decode_tile_work(plan.config, dims);
  tile.read_bytes *= element_bytes / 2;
  const Pace pace = {.barriers = 0,
                     .overlap = 1,
                     .frame_latencies = kPauseLatencies,
                     .deal = attention::Deal::kStride};
  const attention::StepPace of_steps =
      attention::pace_steps(device, attention::cta_shape(plan.config), pace, tile, 1, together);
  constexpr double kPartBarriers = 3;
  const KernelWork part =
      decode_part_work(plan.config, dims, plan.packing.tile_heads * plan.packing.tile_queries);
  const double pause = of_steps.frame + kPartBarriers * device.barrier_cycles +
                       part.warp_instructions / device.issue_slots;

  const RowBytes bytes = {.keys = static_cast<double>(dims.qk + dims.v) * element_bytes,
                          .query = static_cast<double>(dims.qk) * 2,
                          .out = static_cast<double>(dims.v) * 2,
                          .state = static_cast<double>(dims.v + 2) * 4};
  const std::vector<Load> loads = deal_out(plan, works, bytes);
  // All CTAs wait for their first keys at the same time.
  made.first_micros = micros(pause);
  const double cycles = cycles_of(device, loads, pause, of_steps.step());
  double keys = 0, max_steps = 0, all_steps = 0;
  for (const StepRequest& request : requests) {
    keys += static_cast<double>(request.keys *
                                base::ceil_div(request.queries, plan.packing.tile_queries));
  }
  for (const Load& load : loads) {
    max_steps = std::max(max_steps, load.steps);
    all_steps += load.steps;
  }
  if (all_steps > 0) made.busiest = max_steps * static_cast<double>(plan.ctas) / all_steps;
  made.keys_micros = micros(keys * static_cast<double>(columns) * bytes.keys / device.memory_bytes);
  made.uneven_micros = micros(cycles) - made.keys_micros;
  made.join_micros = micros(join_cycles(device, plan, works, bytes, dims.v));
  made.predicted_micros = micros(pause + cycles) + made.launch_micros + made.join_micros;
  return made;
}

}  // namespace annulus::batch
