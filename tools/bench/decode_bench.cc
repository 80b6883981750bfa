// Measures the host cost of decoding over ranks: the time in which a rank puts a step of a growing
// cache on its stream. A step is prepare, attention and join. The simulated devices do not execute
// the launches. Ranks are threads, and messages go through the simulated NCCL. The figures include
// the host time of the simulated NCCL and of the rest of the simulated driver.

#include <algorithm>
#include <atomic>
#include <barrier>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "annulus/batch.h"
#include "annulus/communicator.h"
#include "annulus/join.h"
#include "annulus/observe.h"
#include "api/impl.h"
#include "base/env.h"
#include "harness.h"
#include "support/simulator.h"

namespace {

using namespace annulus;

constexpr int kRanks = 4;
constexpr std::int64_t kSteps = 10000, kHeads = 32, kKvHeads = 8, kDim = 128, kPageRows = 16;

std::atomic<bool> idle = false;
abi::CudaTable below;

// The simulated driver. Its launches do nothing while `idle` is set.
device::DriverPointer idle_driver() {
  below = test::simulator_table();
  abi::CudaTable table = below;
  table.launch_kernel = [](abi::CUfunction function, unsigned grid_x, unsigned grid_y,
                           unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                           unsigned shared, abi::CUstream stream, void** parameters,
                           void** extra) -> abi::CUresult {
    if (idle) return abi::kCudaSuccess;
    return below.launch_kernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared,
                               stream, parameters, extra);
  };
  return std::make_shared<const device::Driver>(table, "idle launches");
}

struct Trace {
  double worst_rank = 0;  // the largest median of a rank, in microseconds
  double all_ranks = 0;   // the sum of the medians of all ranks
  double compiles = 0;    // the kernels that were compiled or loaded after the first step
  double exchanges = 0;   // the exchanges of a layer
};

BatchProblem problem_of(int rank) {
  BatchProblem problem;
  problem.heads = kHeads;
  problem.kv_heads = kKvHeads;
  problem.dim_qk = problem.dim_v = kDim;
  problem.pattern = causal();
  problem.page_rows = kPageRows;
  problem.want_lse = true;
  problem.most = {.requests = 1, .rows = 1, .rows_of_one = 1, .keys_of_one = kSteps};
  problem.interleave = {.block = 1, .ranks = kRanks, .rank = rank};
  return problem;
}

// Runs the steps of one rank. Returns the median of its processor time per step, in microseconds.
double decode(const Device& device, const Communicator& ranks, std::barrier<>& all, Trace* trace) {
  const BatchPlan plan = plan_batch(device, problem_of(ranks.rank()));
  const JoinPlan join = plan_join(device, ranks, {.heads = kHeads, .dim_v = kDim, .max_rows = 1});
  // No kernel runs, so only the addresses are used.
  const DeviceMemory memory = device.allocate(4 << 20);
  auto* const base = static_cast<char*>(memory.data());
  const DeviceMemory workspace = device.allocate(plan.workspace_bytes());
  const DeviceMemory scratch = device.allocate(join.workspace_bytes());
  auto* const k_length = reinterpret_cast<std::int32_t*>(base + 4096);
  BatchMetadata metadata;
  metadata.q_begin = reinterpret_cast<const std::int32_t*>(base);
  metadata.k_length = k_length;
  metadata.k_pages = {reinterpret_cast<const std::int32_t*>(base + 8192), nullptr,
                      kSteps / kPageRows + 1};
  BatchOperands operands;
  operands.q = base + (1 << 20);
  operands.o = base + (2 << 20);
  operands.lse = reinterpret_cast<float*>(base + (3 << 20));
  operands.k = operands.v = base + (1 << 19);
  operands.q_strides = operands.o_strides = {kHeads * kDim, kDim};
  operands.lse_strides = {kHeads, 1};
  operands.k_strides = operands.v_strides = {kPageRows * kKvHeads * kDim, kKvHeads * kDim, kDim};
  JoinOperands partial;
  partial.rows = 1;
  partial.o = operands.o;
  partial.lse = operands.lse;
  partial.o_strides = partial.joined_o_strides = operands.o_strides;
  partial.lse_strides = partial.joined_lse_strides = operands.lse_strides;
  partial.joined_o = base + (2 << 20) + (1 << 19);
  partial.joined_lse = reinterpret_cast<float*>(base + (3 << 20) + (1 << 19));
  const auto loaded = [&] {
    const Metrics metrics = device.metrics();
    return metrics.compiles + metrics.kernels_from_disk;
  };
  all.arrive_and_wait();
  idle = true;
  std::vector<double> micros;
  std::int64_t first = 0;
  for (std::int32_t step = 1; step <= kSteps; ++step) {
    device.copy_to_device(k_length, &step, sizeof step);
    const double start = bench::thread_seconds();
    plan.prepare(nullptr, metadata, workspace.data());
    plan.run(nullptr, operands, workspace.data());
    join.run(nullptr, partial, scratch.data());
    micros.push_back((bench::thread_seconds() - start) * 1e6);
    if (step == 1) first = loaded();
  }
  device.synchronize();
  all.arrive_and_wait();
  idle = false;
  if (ranks.rank() == 0) {
    trace->compiles = static_cast<double>(loaded() - first);
    trace->exchanges = join.info().exchanges;
  }
  return bench::median(micros);
}

Trace run_trace(const device::DriverPointer& driver) {
  const auto open = [&](int rank) {
    return api::open_on(driver, api::parse_device_name("sim:sm_80:" + std::to_string(rank)), {},
                        base::read_environment());
  };
  Trace trace;
  const CommunicatorId id = make_communicator_id(open(0));
  std::barrier<> all(kRanks);
  std::vector<double> medians(kRanks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      const Device device = open(rank);
      const Communicator ranks = Communicator::open(device, id, kRanks, rank);
      medians[static_cast<std::size_t>(rank)] = decode(device, ranks, all, &trace);
    });
  }
  for (std::thread& thread : threads) thread.join();
  trace.worst_rank = *std::max_element(medians.begin(), medians.end());
  for (const double median : medians) trace.all_ranks += median;
  return trace;
}

}  // namespace

int main(int argc, char** argv) {
  bench::Bench bench("decode_bench", argc, argv);
  const device::DriverPointer driver = idle_driver();
  // Each round has one trace. The figures of the round are taken from it in turn.
  Trace trace;
  bench.add({"10000 steps on 4 ranks: a rank's host time for one", "us", 100, true}, [&] {
    trace = run_trace(driver);
    return trace.worst_rank;
  });
  bench.add({"that of all ranks together", "us", 0, true}, [&] { return trace.all_ranks; });
  bench.add({"kernels compiled or loaded after the first step", "", 0, true},
            [&] { return trace.compiles; });
  bench.add({"exchanges of a layer, queries on all ranks", "", 1, true},
            [&] { return trace.exchanges; });
  return bench.run();
}
