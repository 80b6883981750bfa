// Registers, turns, and data that CTAs of a cluster exchange: buffers that they fill for each
// other, and works that one of them draws for all.

#include <utility>

#include "micro/bench.h"
#include "params/wgmma_params.h"

namespace annulus::micro {
namespace {

struct PairOutcome {
  std::vector<unsigned> wrong;
  std::vector<long long> clocks;
};

PairOutcome run_pair(const Bench& bench, int turns, int lag, std::vector<std::string> defines) {
  const Matrix matrix = random_matrix(256, 64, 100, 5);
  const device::Buffer memory = bench.upload(to_bf16(matrix));
  const device::Buffer wrong = bench.zeros<unsigned>(2);
  const device::Buffer clocks = bench.zeros<long long>(2);
  const auto map = bench.map(memory, 256, 64, 32);
  const abi::CUdeviceptr truth = memory.address();
  const abi::CUdeviceptr to = wrong.address();
  const abi::CUdeviceptr clocks_to = clocks.address();
  bench.run(bench.kernel("barriers.cu", "copy_for_pair", {}, std::move(defines)),
            {.grid = 2, .shared_bytes = 8192 + 16}, {&map, &truth, &turns, &lag, &to, &clocks_to});
  return {bench.download<unsigned>(wrong), bench.download<long long>(clocks)};
}

// Runs clusters of two CTAs, `grid` CTAs in all, that take `count` works from a shared counter, in
// an order that differs from the order of their numbers. Returns the number of works that some
// reader of a CTA did not see exactly once. The consumers of the second CTA of a cluster wait `lag`
// clocks in each work.
int draw(const Bench& bench, unsigned grid, int count, int lag) {
  constexpr unsigned kConsumers = 2;
  std::vector<int> order(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) order[static_cast<std::size_t>(i)] = count - 1 - i;
  const device::Buffer in_order = bench.upload(order);
  const device::Buffer next = bench.upload(std::vector<unsigned>{grid / 2});
  const device::Buffer seen = bench.zeros<unsigned>(2 * order.size());
  kernels::WorkParams work{};
  work.next = reinterpret_cast<unsigned*>(next.address());
  work.order = reinterpret_cast<const int*>(in_order.address());
  work.count = count;
  const abi::CUdeviceptr to = seen.address();
  using jit::Constant;
  bench.run(
      bench.kernel(
          "barriers.cu", "draw_works",
          {Constant::type("Element", "tile::Bfloat16"), Constant::integer("kConsumers", kConsumers),
           Constant::integer("kCluster", 2), Constant::boolean("kDrawsWork", true),
           // These determine the layout of shared memory.
           Constant::integer("kDimQk", 64), Constant::integer("kDimV", 64),
           Constant::integer("kColumns", 64), Constant::integer("kStages", 1),
           Constant::boolean("kOutputApart", false), Constant::integer("kPromoteSteps", 0)}),
      {.grid = grid, .threads = 128 * (kConsumers + 1), .shared_bytes = 40 << 10},
      {&work, &lag, &to});
  int wrong = 0;
  for (const unsigned readers : bench.download<unsigned>(seen)) {
    wrong += readers != 4 * kConsumers + 1;
  }
  return wrong;
}

}  // namespace

Result drawn_works(const Bench& bench) {
  Result result;
  const int count = bench.simulated() ? 60 : 100'000;
  const auto all = static_cast<unsigned>(bench.device().info().multiprocessors) / 2 * 2;
  for (const unsigned grid : {2u, bench.simulated() ? 6u : all}) {
    for (const int lag : {0, 1000}) {
      const int wrong = draw(bench, grid, count, lag);
      result.numbers[std::to_string(grid) + " CTAs, lag " + std::to_string(lag)] = {
          {"works", count}, {"wrong", wrong}};
      result.passed = result.passed && wrong == 0;
    }
  }
  return result;
}

Result registers_and_turns(const Bench& bench) {
  Result result;
  const int turns = bench.simulated() ? 100 : 100'000;
  // The registers of wgmma_forward, and the registers of chunk_wgmma_forward (40 and 232).
  struct Split {
    unsigned consumers, gives, takes;
  };
  for (const auto& [consumers, gives, takes] :
       {Split{1, 56, 256}, Split{2, 24, 240}, Split{2, 40, 232}, Split{3, 32, 160}}) {
    const device::Buffer out = bench.zeros<unsigned>(consumers);
    const abi::CUdeviceptr to = out.address();
    bench.run(bench.kernel("barriers.cu", "take_turns",
                           {jit::Constant::integer("kConsumers", consumers),
                            jit::Constant::integer("kProducerRegisters", gives),
                            jit::Constant::integer("kConsumerRegisters", takes)}),
              {.threads = 128 * (consumers + 1)}, {&turns, &to});
    const auto counts = bench.download<unsigned>(out);
    result.numbers["turns"][std::to_string(consumers) + " consumers of " + std::to_string(takes) +
                            " registers"] = counts;
    result.passed =
        result.passed && counts == std::vector<unsigned>(consumers, static_cast<unsigned>(turns));
  }
  return result;
}

Result pair_of_ctas(const Bench& bench) {
  Result result;
  const int turns = bench.simulated() ? 9 : 100'000;
  for (const int lag : {0, bench.simulated() ? 500 : 20'000}) {
    const PairOutcome outcome = run_pair(bench, turns, lag, {});
    result.numbers["lag " + std::to_string(lag)] = {{"turns", turns},
                                                    {"wrong_words", outcome.wrong}};
    result.passed = result.passed && outcome.wrong == std::vector<unsigned>(2, 0);
  }
  return result;
}

Result pair_clocks(const Bench& bench) {
  Result result;
  const int turns = bench.simulated() ? 9 : 20'000;
  for (const bool release : {false, true}) {
    std::vector<std::string> defines;
    if (release) defines.emplace_back("ANNULUS_RELEASE_TO_CLUSTER");
    const PairOutcome outcome = run_pair(bench, turns, 0, std::move(defines));
    const char* name = release ? "released_to_the_cluster" : "as_shipped";
    for (const long long clocks : outcome.clocks) {
      result.numbers[name]["clocks_of_an_arrival"].push_back(static_cast<double>(clocks) / turns);
    }
    result.passed = result.passed && outcome.wrong == std::vector<unsigned>(2, 0);
  }
  return result;
}

}  // namespace annulus::micro
