// Measures the host cost of a run: the library's own time and allocations in addition to the bare
// launches. The driver's calls return at once, so the figures do not contain the driver's time.

#include <algorithm>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "annulus/ring.h"
#include "api/impl.h"
#include "base/fail.h"
#include "c_api/call.h"
#include "harness.h"
#include "shape_log/shape_line.h"
#include "support/counted_malloc.h"
#include "support/idle_launches.h"
#include "support/simulator.h"

namespace {

using namespace annulus;
using test::IdleLaunches;

constexpr int kBatch = 1000;
constexpr int kBatches = 101;

double micros_each(const std::function<void()>& action) {
  const double start = bench::thread_seconds();
  for (int i = 0; i < kBatch; ++i) action();
  return (bench::thread_seconds() - start) * 1e6 / kBatch;
}

double median_micros(const std::function<void()>& action) {
  std::vector<double> each;
  for (int i = 0; i < kBatches; ++i) each.push_back(micros_each(action));
  return bench::median(each);
}

// The time by which `run` takes longer than `bare`. Batches of the two take turns, so a slower
// clock affects both.
double median_difference(const std::function<void()>& run, const std::function<void()>& bare) {
  std::vector<double> each;
  for (int i = 0; i < kBatches; ++i) {
    const double whole = micros_each(run);
    each.push_back(whole - micros_each(bare));
  }
  return bench::median(each);
}

struct Idle {
  Device device = api::open_on(std::make_shared<const device::Driver>(
                                   IdleLaunches::wrap(test::simulator_table()), "idle launches"),
                               api::parse_device_name("sim:sm_90a"), {}, base::read_environment());
  // Nothing reads the memory; only its addresses are used.
  DeviceMemory memory = device.allocate(1 << 20);

  Operands operands(std::int64_t rows, std::int64_t heads, std::int64_t kv_heads) const {
    Operands operands;
    operands.q = operands.k = operands.v = memory.data();
    operands.o = static_cast<char*>(memory.data()) + 4096;
    operands.q_strides = operands.o_strides = Strides::bshd(rows, heads, 128);
    operands.k_strides = operands.v_strides = Strides::bshd(rows, kv_heads, 128);
    return operands;
  }
};

// The microseconds of thread time of a call while `threads` threads make calls at the same time.
// The result is the largest median of a thread.
double median_of_threads(int threads, const std::function<void(int)>& call) {
  std::vector<double> medians(static_cast<std::size_t>(threads));
  std::vector<std::thread> all;
  for (double& median : medians) {
    all.emplace_back([&call, &median] {
      int at = 0;
      median = median_micros([&] { call(at++); });
    });
  }
  for (std::thread& thread : all) thread.join();
  return *std::max_element(medians.begin(), medians.end());
}

Problem decoder_layer() {
  Problem problem;
  problem.heads = 32;
  problem.kv_heads = 8;
  problem.seq_q = problem.seq_k = 4096;
  problem.dim_qk = problem.dim_v = 128;
  problem.pattern = causal() & (window(1023, 0) | sink(4));
  return problem;
}

annulus_strides c_strides(const Strides& strides) {
  return {strides.batch, strides.head, strides.row};
}

}  // namespace

int main(int argc, char** argv) {
  bench::Bench bench("run_bench", argc, argv);
  const Idle idle;
  const Problem problem = decoder_layer();
  const Plan plan = idle.device.plan(problem);
  const Operands operands = idle.operands(4096, 32, 8);
  const auto run = [&] { plan.run(nullptr, operands, idle.memory.data()); };

  annulus_operands c = ANNULUS_OPERANDS_INIT;
  c.q = c.k = c.v = operands.q;
  c.o = operands.o;
  c.q_strides = c.o_strides = c_strides(operands.q_strides);
  c.k_strides = c.v_strides = c_strides(operands.k_strides);
  auto* const handle = reinterpret_cast<annulus_plan*>(
      c_api::plans().insert(std::make_unique<c_api::PlanObject>(plan)));
  const auto run_c = [&] {
    if (annulus_plan_run(handle, nullptr, &c, idle.memory.data()) != ANNULUS_OK) {
      base::fail(ErrorCode::kInternal, "{}", annulus_last_error());
    }
  };

  const abi::CudaTable& table = api::inside(idle.device).context->table();
  kernels::AttentionParams parameters{};
  const auto bare = [&] {
    for (int launch = 0; launch < plan.info().launches; ++launch) {
      void* arguments[] = {&parameters};
      table.launch_kernel(nullptr, 32, 32, 1, 128, 1, 1, 65536, nullptr, arguments, nullptr);
    }
  };

  constexpr int kRanks = 4;
  const std::vector<Device> devices(kRanks, idle.device);
  const RingPlan ring =
      plan_ring(devices, problem, make_shards(Sharding::kZigzag, kRanks, 4096, 4096));
  std::vector<DeviceMemory> workspaces;
  std::vector<RingCall> calls(kRanks);
  for (int rank = 0; rank < kRanks; ++rank) {
    workspaces.push_back(idle.device.allocate(ring.workspace_bytes(rank)));
    calls[static_cast<std::size_t>(rank)] = {
        nullptr, idle.operands(ring.rank_problem(rank).seq_q, 32, 8), workspaces.back().data()};
  }
  const auto run_ring = [&] { ring.run(calls); };

  // The layers of a model take turns. Each layer has separate operands.
  constexpr int kLayers = 80;
  constexpr int kThreads = 8;
  std::vector<Operands> layers(kLayers, operands);
  std::vector<BoundCall> bound;
  for (Operands& layer : layers) {
    layer.k = layer.v = static_cast<const char*>(operands.k) + 8192 + 256 * (&layer - &layers[0]);
    bound.push_back(plan.bind(layer, idle.memory.data()));
  }
  const auto layer_of = [](int at) { return static_cast<std::size_t>(at % kLayers); };
  const auto run_plain = [&](int at) {
    plan.run(nullptr, layers[layer_of(at)], idle.memory.data());
  };
  const auto run_bound = [&](int at) { bound[layer_of(at)].run(nullptr); };

  // The cost that a shape log adds to a plan, for objects that were planned before and for new
  // objects.
  shape_log::ShapeCounts counts;
  const auto count = [&] { counts.add(problem, {}); };
  BatchProblem batch;
  batch.heads = problem.heads;
  batch.kv_heads = problem.kv_heads;
  batch.dim_qk = batch.dim_v = problem.dim_qk;
  batch.pattern = problem.pattern;
  batch.most = {.requests = 64, .rows = 64, .keys_of_one = 4096};
  const BatchOptions batch_options;
  const auto count_batch = [&] { counts.add(batch, batch_options); };
  const std::vector<Problem> others = [] {
    std::vector<Problem> made;
    for (int i = 0; i < kBatch; ++i) made.push_back(decoder_layer());
    return made;
  }();
  const auto count_others = [&, at = std::size_t{0}]() mutable {
    counts.add(others[at++ % others.size()], {});
  };
  const auto make_line = [&] { shape_log::shape_line(problem); };

  IdleLaunches::idle = true;
  const auto with_context = [](bool current, const std::function<double()>& measure) {
    return [=] {
      IdleLaunches::current = current;
      return measure();
    };
  };
  const auto allocations = [](const std::function<void()>& action) {
    return [=] {
      const int before = test::allocations;
      for (int i = 0; i < kBatch; ++i) action();
      return static_cast<double>(test::allocations - before) / kBatch;
    };
  };
  bench.add({"Plan::run more than its bare launches", "us", 5, true},
            with_context(true, [&] { return median_difference(run, bare); }));
  bench.add({"the same, context not current", "us", 5, true},
            with_context(false, [&] { return median_difference(run, bare); }));
  bench.add({"a plan's count in the shape log", "us", 1, true},
            [&] { return median_micros(count); });
  bench.add({"a batch's count in the shape log", "us", 1, true},
            [&] { return median_micros(count_batch); });
  bench.add({"allocations per count in the shape log", "calls", 0, true}, allocations(count));
  bench.add({"allocations per count of a batch", "calls", 0, true}, allocations(count_batch));
  bench.add({"a plan's count in the shape log, of 1000 objects in turn", "us", 1, true},
            [&] { return median_micros(count_others); });
  bench.add({"the line of a shape that is new", "us", 0, true},
            [&] { return median_micros(make_line); });
  bench.add({"annulus_plan_run more than bare launches", "us", 5, true},
            with_context(true, [&] { return median_difference(run_c, bare); }));
  bench.add({"BoundCall::run, 80 in turn, 8 threads", "us", 0.1, true},
            with_context(true, [&] { return median_of_threads(kThreads, run_bound); }));
  bench.add({"Plan::run, 80 operands in turn, 8 threads", "us", 0.5, true},
            with_context(true, [&] { return median_of_threads(kThreads, run_plain); }));
  bench.add({"allocations per Plan::run", "calls", 0, true}, allocations(run));
  bench.add({"allocations per annulus_plan_run", "calls", 0, true}, allocations(run_c));
  bench.add({"RingPlan::run of 4 ranks, all driver calls", "us", 0, true},
            with_context(true, [&] { return median_micros(run_ring); }));
  bench.add({"allocations per RingPlan::run", "calls", 0, true}, allocations(run_ring));
  const int code = bench.run();
  IdleLaunches::idle = false;
  annulus_plan_destroy(handle);
  return code;
}
