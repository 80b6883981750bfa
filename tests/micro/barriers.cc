// Tests 7 to 9: registers, turns, and buffers that two CTAs fill for each other.

#include <utility>

#include "micro/bench.h"

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

}  // namespace

Result registers_and_turns(const Bench& bench) {
  Result result;
  const int turns = bench.simulated() ? 100 : 100'000;
  for (const unsigned consumers : {1u, 2u, 3u}) {
    const device::Buffer out = bench.zeros<unsigned>(consumers);
    const abi::CUdeviceptr to = out.address();
    bench.run(bench.kernel("barriers.cu", "take_turns",
                           {jit::Constant::integer("kConsumers", consumers)}),
              {.threads = 128 * (consumers + 1)}, {&turns, &to});
    const auto counts = bench.download<unsigned>(out);
    result.numbers["turns"][std::to_string(consumers) + " consumers"] = counts;
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
