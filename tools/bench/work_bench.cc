// Counts instructions of kernels on the simulator. It compares sparse kernels with dense kernels,
// and a list that leaves nothing out with tiles that are computed by arithmetic. Counts are the
// same on every machine. It also measures the time to plan very long sequences.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "annulus/device.h"
#include "attention/plan/plan.h"
#include "base/random.h"
#include "harness.h"

namespace {

using namespace annulus;

Problem problem_of(std::int64_t seq, std::int64_t heads, std::int64_t kv_heads) {
  Problem problem;
  problem.heads = heads;
  problem.kv_heads = kv_heads;
  problem.seq_q = problem.seq_k = seq;
  problem.dim_qk = problem.dim_v = 128;
  return problem;
}

// A pattern of 64 x 64 blocks. Every row keeps the same share of blocks, including the block on the
// diagonal. A density of 1 keeps all blocks.
Pattern random_blocks(std::int64_t seq, double density) {
  BlockLayout layout;
  layout.block_rows = layout.block_columns = 64;
  layout.seq_q = layout.seq_k = seq;
  const std::int64_t across = seq / 64;
  const auto kept = static_cast<std::uint32_t>(density * static_cast<double>(across) + 0.5);
  base::Random random(11);
  layout.indptr.push_back(0);
  for (std::int64_t row = 0; row < across; ++row) {
    std::vector<bool> taken(static_cast<std::size_t>(across));
    taken[static_cast<std::size_t>(row)] = true;
    for (std::uint32_t i = 1; i < kept;) {
      const std::uint32_t column = random.below(static_cast<std::uint32_t>(across));
      if (taken[column]) continue;
      taken[column] = true;
      ++i;
    }
    for (std::size_t column = 0; column < taken.size(); ++column) {
      if (taken[column]) layout.indices.push_back(static_cast<std::int32_t>(column));
    }
    layout.indptr.push_back(static_cast<std::int64_t>(layout.indices.size()));
  }
  return blocks(std::move(layout));
}

// The warp instructions of one run, in millions.
double instructions(const Device& device, const Problem& problem, const std::string& config) {
  PlanOptions options;
  options.config = config;
  options.kv_splits = 1;
  const Plan plan = device.plan(problem, options);
  const auto elements = [](std::int64_t rows, std::int64_t heads) {
    return static_cast<std::size_t>(rows * heads * 128);
  };
  const std::vector<std::uint16_t> zeros(elements(problem.seq_q, problem.heads));
  const auto tensor = [&](std::int64_t rows, std::int64_t heads) {
    DeviceMemory memory = device.allocate(elements(rows, heads) * 2);
    device.copy_to_device(memory.data(), zeros.data(), memory.bytes());
    return memory;
  };
  const DeviceMemory q = tensor(problem.seq_q, problem.heads);
  const DeviceMemory k = tensor(problem.seq_k, problem.kv_heads);
  const DeviceMemory v = tensor(problem.seq_k, problem.kv_heads);
  const DeviceMemory o = tensor(problem.seq_q, problem.heads);
  Operands operands;
  operands.q = q.data();
  operands.k = k.data();
  operands.v = v.data();
  operands.o = o.data();
  operands.q_strides = operands.o_strides = Strides::bshd(problem.seq_q, problem.heads, 128);
  operands.k_strides = operands.v_strides = Strides::bshd(problem.seq_k, problem.kv_heads, 128);
  const DeviceMemory workspace = device.allocate(plan.workspace_bytes());
  device.counters(true);
  plan.run(nullptr, operands, workspace.data());
  device.synchronize();
  for (const auto& [name, value] : device.counters()) {
    if (name == "warp_instructions") return static_cast<double>(value) / 1e6;
  }
  return 0;
}

attention::LaunchPlan plan_of(const Problem& problem) {
  const attention::DeviceLimits limits = {{90, 'a'}, 132, 227 * 1024};
  return attention::make_plan(problem, attention::choose_config(problem, limits), limits);
}

}  // namespace

int main(int argc, char** argv) {
  bench::Bench bench("work_bench", argc, argv);
  constexpr std::int64_t kSeq = 8192;
  struct Family {
    const char* name;
    const char* device;
    // The configuration of the sparse kernels and of the kernels with which they are compared.
    const char* config;
    std::int64_t heads, kv_heads;
  };
  const Family families[] = {{"mma", "sim:sm_80", "mma m64 n64 w4 s2 x2", 1, 1},
                             {"wgmma", "sim:sm_90a", "wgmma m64 n64 w8 s2 b2 h2", 2, 1}};
  SimulationOptions fast;
  fast.checked = false;
  for (const Family& family : families) {
    DeviceOptions options;
    options.name = family.device;
    auto device = std::make_shared<Device>(Device::open(options));
    device->set_simulation(fast);
    const std::string dense = std::string(family.name) + " D128 S8192, dense";
    const std::string all = std::string(family.name) + " D128 S8192, a list of every block";
    const std::string sparse =
        std::string(family.name) + " D128 S8192, 64 x 64 blocks of density 0.10";
    Problem problem = problem_of(kSeq, family.heads, family.kv_heads);
    const auto add = [&](const std::string& name, const Pattern& pattern) {
      problem.pattern = pattern;
      bench.add({.name = name, .unit = "M warp inst"}, [=, config = std::string(family.config)] {
        return instructions(*device, problem, config);
      });
    };
    add(dense, annulus::dense());
    add(all, random_blocks(kSeq, 1));
    add(sparse, random_blocks(kSeq, 0.10));
    bench.add_ratio({.name = std::string(family.name) + ", the list of every block over dense",
                     .unit = "x",
                     .bar = 1.03,
                     .lower_is_better = true},
                    all, dense);
    bench.add_ratio({.name = std::string(family.name) + ", density 0.10 over dense",
                     .unit = "x",
                     .bar = 0.115,
                     .lower_is_better = true},
                    sparse, dense);
  }
  for (const auto& [name, pattern] :
       {std::pair<const char*, Pattern>{"dense", dense()}, {"causal", causal()}}) {
    for (const int shift : {20, 30}) {
      Problem problem = problem_of(std::int64_t{1} << shift, 32, 8);
      problem.pattern = pattern;
      const std::string of = std::string("plan of 2^") + std::to_string(shift) + " tokens, " + name;
      bench.add({.name = of, .unit = "ms"}, [=] {
        const double start = bench::thread_seconds();
        plan_of(problem);
        return (bench::thread_seconds() - start) * 1e3;
      });
      bench.add({.name = of + ": its lists", .unit = "bytes"},
                [=] { return static_cast<double>(plan_of(problem).tiles->device_bytes()); });
    }
  }
  return bench.run();
}
