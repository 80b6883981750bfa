// Batches of requests: what their kernels read and issue, counted on the simulator; how evenly a
// step is dealt out; what a plan needs; and what a step costs the host. Counts are the same on
// every machine.

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
#include "batch/batch_plan.h"
#include "batch/batch_runner.h"
#include "harness.h"
#include "params/batch_params.h"

namespace {

using namespace annulus;

const attention::DeviceLimits kH200 = {
    .arch = {90, 'a'}, .multiprocessors = 132, .shared_bytes_per_block = 227 * 1024};

struct Request {
  std::int64_t queries;
  std::int64_t keys;
};

BatchProblem problem_of(std::int64_t heads, std::int64_t kv_heads, std::int64_t dim,
                        const std::vector<Request>& requests, std::int64_t page_rows) {
  BatchProblem problem;
  problem.heads = heads;
  problem.kv_heads = kv_heads;
  problem.dim_qk = problem.dim_v = dim;
  problem.pattern = causal();
  problem.page_rows = page_rows;
  problem.most.requests = std::ssize(requests);
  for (const Request& request : requests) {
    problem.most.rows += request.queries;
    problem.most.rows_of_one = std::max(problem.most.rows_of_one, request.queries);
    problem.most.keys_of_one = std::max(problem.most.keys_of_one, request.keys);
    problem.most.keys += request.keys;
  }
  return problem;
}

std::vector<Request> decoding(std::int64_t count, std::int64_t keys) {
  return std::vector<Request>(static_cast<std::size_t>(count), {1, keys});
}

// Lengths of 1 to `most` keys.
std::vector<Request> uniform(std::int64_t count, std::int64_t most, std::uint64_t seed) {
  base::Random random(seed);
  std::vector<Request> requests;
  for (std::int64_t i = 0; i < count; ++i) {
    requests.push_back({1, 1 + random.below(static_cast<std::uint32_t>(most))});
  }
  return requests;
}
std::vector<Request> log_uniform(std::int64_t count, double most, std::uint64_t seed) {
  base::Random random(seed);
  std::vector<Request> requests;
  for (std::int64_t i = 0; i < count; ++i) {
    requests.push_back({1, static_cast<std::int64_t>(std::exp(random.uniform() * std::log(most)))});
  }
  return requests;
}

// A step with zeros for tensors, whose pages follow one another.
class Step {
 public:
  Step(const Device& device, const BatchProblem& problem, const std::vector<Request>& requests)
      : device_(device), plan_(plan_batch(device, problem)) {
    std::vector<std::int32_t> q_begin = {0}, k_length, ids, begin = {0};
    std::int32_t key = 0;
    for (const Request& request : requests) {
      q_begin.push_back(q_begin.back() + static_cast<std::int32_t>(request.queries));
      k_length.push_back(static_cast<std::int32_t>(request.keys));
      if (problem.page_rows == 0) {
        begin.push_back(key += static_cast<std::int32_t>(request.keys));
        continue;
      }
      for (std::int64_t i = 0; i < base::ceil_div(request.keys, problem.page_rows); ++i) {
        ids.push_back(static_cast<std::int32_t>(ids.size()));
      }
      begin.push_back(static_cast<std::int32_t>(ids.size()));
    }
    metadata_.q_begin = put(q_begin);
    metadata_.k_length = put(k_length);
    std::int64_t rows = key;
    if (problem.page_rows > 0) {
      rows = std::ssize(ids) * problem.page_rows;
      metadata_.k_pages = {put(ids), put(begin), 0};
      operands_.k_pages = operands_.v_pages = std::ssize(ids);
    } else {
      metadata_.k_begin = put(begin);
    }
    const std::int64_t q_row = problem.heads * problem.dim_qk;
    const std::int64_t o_row = problem.heads * problem.dim_v;
    const std::int64_t k_row = problem.kv_heads * problem.dim_qk;
    const std::int64_t v_row = problem.kv_heads * problem.dim_v;
    const std::int64_t page = std::max<std::int64_t>(problem.page_rows, 1);
    operands_.q = zeros(problem.most.rows * q_row);
    operands_.o = zeros(problem.most.rows * o_row);
    operands_.k = zeros(rows * k_row);
    operands_.v = zeros(rows * v_row);
    operands_.q_strides = {q_row, problem.dim_qk};
    operands_.o_strides = {o_row, problem.dim_v};
    operands_.k_strides = {page * k_row, k_row, problem.dim_qk};
    operands_.v_strides = {page * v_row, v_row, problem.dim_v};
    workspace_ = device_.allocate(plan_.workspace_bytes());
    plan_.prepare(nullptr, metadata_, workspace_.data());
    device_.synchronize();
    for (const Request& request : requests) {
      visible_bytes_ += static_cast<double>(2 * request.keys * (k_row + v_row));
    }
  }

  const BatchPlan& plan() const { return plan_; }
  double visible_bytes() const { return visible_bytes_; }
  void run() const { plan_.run(nullptr, operands_, workspace_.data()); }
  std::map<std::string, double> counters() const {
    device_.counters(true);
    run();
    device_.synchronize();
    std::map<std::string, double> all;
    for (const auto& [name, value] : device_.counters()) all[name] = static_cast<double>(value);
    return all;
  }

 private:
  const std::int32_t* put(const std::vector<std::int32_t>& values) {
    memory_.push_back(device_.allocate(std::max<std::size_t>(values.size(), 1) * 4));
    device_.copy_to_device(memory_.back().data(), values.data(), values.size() * 4);
    return static_cast<const std::int32_t*>(memory_.back().data());
  }
  void* zeros(std::int64_t elements) {
    const std::vector<std::uint16_t> values(static_cast<std::size_t>(elements));
    memory_.push_back(device_.allocate(values.size() * 2));
    device_.copy_to_device(memory_.back().data(), values.data(), values.size() * 2);
    return memory_.back().data();
  }

  Device device_;
  BatchPlan plan_;
  BatchMetadata metadata_;
  BatchOperands operands_;
  std::vector<DeviceMemory> memory_;
  DeviceMemory workspace_;
  double visible_bytes_ = 0;
};

// How evenly steps of decoding requests are dealt out to the CTAs of an H200, by the lists that the
// device makes of them.
class Dealing {
 public:
  Dealing(const Device& device, std::int64_t requests, std::int64_t keys_of_one, std::int64_t keys)
      : device_(device),
        runner_(api::inside(device).context, *api::inside(device).kernels,
                plan_of(requests, keys_of_one, keys, api::limits_of(api::inside(device)).arch)),
        workspace_(device.allocate(static_cast<std::size_t>(runner_.plan().workspace_bytes))),
        metadata_(device.allocate(static_cast<std::size_t>(2 * requests + 2) * 4)) {}

  // The tiles of keys of the CTA that has most of them over the mean of all CTAs.
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
    // The lists are those of an H200, and the kernels those of the device that makes them.
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

Device open(const char* name) {
  DeviceOptions options;
  options.name = name;
  Device device = Device::open(options);
  SimulationOptions fast;
  fast.checked = false;
  device.set_simulation(fast);
  return device;
}

}  // namespace

int main(int argc, char** argv) {
  bench::Bench bench("batch_bench", argc, argv);
  for (const char* name : {"sim:sm_80", "sim:sm_90a"}) {
    const std::string at = std::string(name + 4) + ", ";
    const Device device = open(name);
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
    // A chunk of a prompt, from pages and from rows that follow one another.
    const std::vector<Request> chunk = {{256, 2048}};
    for (const std::int64_t rows : {0, 64, 16}) {
      const auto of = std::make_shared<Step>(device, problem_of(4, 1, 128, chunk, rows), chunk);
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

  const Device device = open("sim:sm_90a");
  constexpr std::int64_t kPool = std::int64_t{1} << 22;
  const auto dealing = std::make_shared<Dealing>(device, 256, 131072, kPool);
  const auto imbalances = [=] {
    std::vector<double> all;
    base::Random random(17);
    for (std::uint64_t seed = 0; all.size() < 1000; ++seed) {
      const auto requests = log_uniform(8 + random.below(249), 131072, seed);
      std::int64_t keys = 0;
      for (const Request& request : requests) keys += request.keys;
      if (keys <= kPool) all.push_back(dealing->imbalance(requests));
    }
    return all;
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
  return bench.run();
}
