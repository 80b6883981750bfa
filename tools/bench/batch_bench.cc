// Figures about batches of requests: the reads and the instructions of their kernels, counted on
// the simulator; how evenly the work of a step is distributed; the cost of a plan; and the cost of
// a step on the host. Counts are the same on every machine.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "annulus/batch.h"
#include "api/impl.h"
#include "base/math.h"
#include "base/random.h"
#include "batch/batch_choice.h"
#include "batch/batch_cost.h"
#include "batch/batch_plan.h"
#include "batch/batch_runner.h"
#include "batch_shapes.h"
#include "batch_step.h"
#include "batch_steps.h"
#include "harness.h"
#include "params/batch_params.h"
#include "published.h"

namespace {

using namespace annulus;
using bench::decoding;
using bench::log_uniform;
using bench::problem_of;
using bench::Request;
using bench::Step;
using bench::uniform;

const attention::DeviceLimits kH200 = {
    .arch = {90, 'a'},
    .multiprocessors = 132,
    .shared_bytes_per_block = 227 * 1024,
    .clock_kilohertz = bench::h200().clock_kilohertz,
    .memory_clock_kilohertz = bench::h200().memory_clock_kilohertz,
    .memory_bus_bits = bench::h200().memory_bus_bits};

// Computes how evenly the work of steps of decoding requests is distributed over the CTAs of an
// H200. It uses the lists that the device makes of the step.
class Dealing {
 public:
  Dealing(const Device& device, std::int64_t requests, std::int64_t keys_of_one, std::int64_t keys)
      : device_(device),
        runner_(api::inside(device).context, *api::inside(device).kernels,
                plan_of(requests, keys_of_one, keys, api::limits_of(api::inside(device)).arch)),
        workspace_(device.allocate(static_cast<std::size_t>(runner_.plan().workspace_bytes))),
        metadata_(device.allocate(static_cast<std::size_t>(2 * requests + 2) * 4)) {}

  // The largest number of tiles of keys of a CTA, divided by the mean over all CTAs.
  double imbalance(const std::vector<Request>& requests) const {
    prepare(requests);
    const batch::ClassPlan& of = runner_.plan().classes.front();
    const auto fetch = [&](auto* values, std::int64_t at) {
      device_.copy_to_host(values->data(), static_cast<std::byte*>(workspace_.data()) + at,
                           values->size() * sizeof((*values)[0]));
    };
    std::vector<kernels::BatchHeader> header(1);
    fetch(&header, of.lists.header_at);
    std::vector<kernels::BatchRow> rows(static_cast<std::size_t>(header[0].rows));
    std::vector<kernels::BatchWork> works(static_cast<std::size_t>(header[0].works));
    fetch(&rows, of.lists.rows_at);
    fetch(&works, of.lists.works_at);
    const std::int64_t part = base::ceil_div(of.part_keys, of.config.tile_columns);
    std::vector<std::int64_t> tiles(static_cast<std::size_t>(of.ctas), 0);
    std::int64_t at = 0;
    for (const kernels::BatchWork& work : works) {
      const std::int64_t left = rows[static_cast<std::size_t>(work.row)].tiles - work.part * part;
      for (std::int64_t column = 0; column < of.packing.columns; ++column) {
        tiles[static_cast<std::size_t>(at++ % of.ctas)] += std::min(left, part);
      }
    }
    double sum = 0;
    for (const std::int64_t of_cta : tiles) sum += static_cast<double>(of_cta);
    return static_cast<double>(*std::ranges::max_element(tiles)) * static_cast<double>(of.ctas) /
           sum;
  }

 private:
  static batch::BatchPlanData plan_of(std::int64_t requests, std::int64_t keys_of_one,
                                      std::int64_t keys, jit::Arch arch) {
    BatchProblem problem = problem_of(32, 8, 128, decoding(requests, keys_of_one), 0);
    problem.most.keys = keys;
    batch::BatchPlanData plan = batch::make_plan(problem, {}, kH200);
    // The lists are for an H200, but the kernels that make them are for the simulated device.
    plan.prepare.arch = arch;
    for (batch::ClassPlan& of : plan.classes) of.spec.arch = of.combine.arch = arch;
    return plan;
  }
  void prepare(const std::vector<Request>& requests) const {
    std::vector<std::int32_t> words = {static_cast<std::int32_t>(requests.size())};
    for (std::size_t i = 0; i <= requests.size(); ++i) {
      words.push_back(static_cast<std::int32_t>(i));
    }
    for (const Request& request : requests) {
      words.push_back(static_cast<std::int32_t>(request.keys));
    }
    auto* const at = static_cast<std::int32_t*>(metadata_.data());
    device_.copy_to_device(at, words.data(), words.size() * 4);
    BatchMetadata metadata;
    metadata.requests = at;
    metadata.q_begin = at + 1;
    metadata.k_length = at + 2 + requests.size();
    device::StreamSink to(nullptr);
    runner_.prepare(to, metadata, workspace_.data());
    device_.synchronize();
  }

  Device device_;
  batch::BatchRunner runner_;
  DeviceMemory workspace_;
  DeviceMemory metadata_;
};

// The warp instructions of a tile of keys in the model, divided by the count of the simulator. The
// same ratio for the additional instructions of a part.
struct Described {
  double tile, part;
};
Described described(const Device& device, std::int64_t dim) {
  BatchOptions one_cta;
  one_cta.max_multiprocessors = 1;
  one_cta.part_keys = 4096;
  const auto count = [&](std::int64_t requests, std::int64_t keys) {
    const std::vector<Request> all = decoding(requests, keys);
    return Step(device, problem_of(4, 1, dim, all, 16), all, one_cta)
        .counters()["warp_instructions"];
  };
  constexpr std::int64_t kKeys = 512;
  const attention::KernelConfig config =
      batch::choose_config(batch::RequestClass::kFewQueries,
                           problem_of(4, 1, dim, decoding(1, kKeys), 16),
                           api::limits_of(api::inside(device)))
          .config;
  const double tiles = static_cast<double>(kKeys) / config.tile_columns;
  const double tile = (count(1, 2 * kKeys) - count(1, kKeys)) / tiles;
  const double part = (count(9, kKeys) - count(1, kKeys)) / 8 - tile * tiles;
  return {batch::decode_tile_work(config, {dim, dim}).warp_instructions / tile,
          batch::decode_part_work(config, {dim, dim}, 4).warp_instructions / part};
}

void add_predictions(bench::Bench* bench) {
  struct Chip {
    const char* name;
    device::DeviceInfo info;
  };
  for (const Chip& chip : {Chip{"A100", bench::a100()}, Chip{"H200", bench::h200()}}) {
    // The least share among the shapes with this target.
    const auto worst = [=](double bar) {
      double least = 1;
      for (const bench::BatchShape& shape : bench::decode_shapes()) {
        if (shape.bar != bar) continue;
        least = std::min(least, bench::predict_batch(chip.info, shape).made.share());
      }
      return least;
    };
    const std::string name = std::string("predicted share of the memory's rate, ") + chip.name;
    bench->add({.name = name + ", worst of five shapes", .unit = "", .bar = 0.90},
               [=] { return worst(0.90); });
    bench->add({.name = name + ", B8 32/8 8k", .unit = "", .bar = 0.85},
               [=] { return worst(0.85); });
  }
  const Device device = bench::open_fast("sim:sm_90a");
  for (const std::int64_t dim : {64, 128, 256}) {
    const std::string name =
        "D" + std::to_string(dim) + ", instructions by the model over those counted: ";
    bench->add({.name = name + "a tile of keys", .unit = "x"},
               bench::once([=] { return described(device, dim).tile; }));
    bench->add({.name = name + "a part", .unit = "x"},
               bench::once([=] { return described(device, dim).part; }));
  }
}

}  // namespace

int main(int argc, char** argv) {
  bench::Bench bench("batch_bench", argc, argv);
  for (const char* name : {"sim:sm_80", "sim:sm_90a"}) {
    const std::string at = std::string(name + 4) + ", ";
    const Device device = bench::open_fast(name);
    const std::vector<Request> requests = uniform(16, 4096, 3);
    const auto step =
        std::make_shared<Step>(device, problem_of(32, 8, 128, requests, 16), requests);
    bench.add({.name = at + "sectors read over those of K and V",
               .unit = "x",
               .bar = 1.03,
               .lower_is_better = true},
              [=] { return step->counters()["global_sectors_read"] * 32 / step->visible_bytes(); });
    bench.add({.name = at + "warp instructions for a byte of K and V",
               .unit = "",
               .bar = 0.05,
               .lower_is_better = true},
              [=] { return step->counters()["warp_instructions"] / step->visible_bytes(); });
    bench.add({.name = at + "matrix flop for a byte of K and V",
               .unit = "",
               .bar = 18,
               .lower_is_better = true},
              [=] { return step->counters()["matrix_flop"] / step->visible_bytes(); });
    bench.add({.name = at + "K and V under way on a multiprocessor",
               .unit = "KiB",
               .bar = std::string(name) == "sim:sm_80" ? 24.0 : 56.0},
              [=] { return static_cast<double>(step->plan().info().bytes_under_way) / 1024; });
    // A chunk of a prompt, with K and V in pages or in consecutive rows.
    const std::vector<Request> chunk = {{2048, 16384}};
    for (const std::int64_t rows : {0, 64, 16}) {
      const auto of = std::make_shared<Step>(device, problem_of(1, 1, 128, chunk, rows), chunk);
      bench.add({.name = at + "a chunk, pages of " + std::to_string(rows), .unit = "M warp inst"},
                [=] { return of->counters()["warp_instructions"] / 1e6; });
    }
    bench.add_ratio({.name = at + "a chunk, pages of 64 over none",
                     .unit = "x",
                     .bar = 1.03,
                     .lower_is_better = true},
                    at + "a chunk, pages of 64", at + "a chunk, pages of 0");
    bench.add_ratio({.name = at + "a chunk, pages of 16 over none",
                     .unit = "x",
                     .bar = 1.1,
                     .lower_is_better = true},
                    at + "a chunk, pages of 16", at + "a chunk, pages of 0");
  }

  const Device device = bench::open_fast("sim:sm_90a");
  constexpr std::int64_t kPool = std::int64_t{1} << 22;
  const auto dealing = std::make_shared<Dealing>(device, 256, 131072, kPool);
  const auto imbalances = [dealing, all = std::make_shared<std::vector<double>>()] {
    if (!all->empty()) return *all;
    base::Random random(17);
    for (std::uint64_t seed = 0; all->size() < 1000; ++seed) {
      const auto requests = log_uniform(8 + random.below(249), 131072, seed);
      std::int64_t keys = 0;
      for (const Request& request : requests) keys += request.keys;
      if (keys <= kPool) all->push_back(dealing->imbalance(requests));
    }
    return *all;
  };
  const std::string batches = "busiest CTA over the mean, 1,000 batches of 8 to 256 requests: ";
  bench.add({.name = batches + "median", .unit = "x", .bar = 1.15, .lower_is_better = true},
            [=] { return bench::median(imbalances()); });
  bench.add({.name = batches + "worst", .unit = "x", .lower_is_better = true},
            [=] { return std::ranges::max(imbalances()); });
  bench.add({.name = "workspace, 256 requests, 64/8 heads, D128, a million keys",
             .unit = "MiB",
             .bar = 64,
             .lower_is_better = true},
            [=] {
              BatchProblem problem = problem_of(64, 8, 128, decoding(256, 131072), 16);
              problem.most.keys = 1 << 20;
              const batch::BatchPlanData plan = batch::make_plan(problem, {}, kH200);
              return static_cast<double>(plan.workspace_bytes) / (1 << 20);
            });
  add_predictions(&bench);
  bench::add_steps(&bench);
  return bench.run();
}
