// The changes of a problem that need a new kernel, and those that do not.

#include <doctest/doctest.h>

#include <vector>

#include "annulus/device.h"

namespace annulus {
namespace {

// The number of plans, of `count` plans, whose kernel was compiled.
int compiled(const Device& device, int count, const auto& problem_of) {
  int compiled = 0;
  for (int i = 0; i < count; ++i) {
    compiled += device.plan(problem_of(i)).info().source == "compiled";
  }
  return compiled;
}

TEST_CASE("windows, documents and lengths change a thousand times and compile nothing") {
  DeviceOptions options;
  options.name = "sim:sm_80";
  options.cache_dir = "";
  options.tuned_path = "";
  const Device device = Device::open(options);
  Problem problem;
  problem.heads = 2;
  problem.dim_qk = problem.dim_v = 64;
  const auto changed = [&](int i) {
    const std::int64_t length = 200 + i % 613;
    std::vector<std::int64_t> starts = {0};
    for (int document = 1; document <= i % 7; ++document) {
      starts.push_back(starts.back() + 11 + (i * document) % 97);
    }
    problem.pattern = causal() & window(1 + i % 389, 0) & documents(starts);
    problem.seq_q = problem.seq_k = length;
    return problem;
  };
  CHECK(compiled(device, 1, changed) == 1);
  CHECK(compiled(device, 1000, changed) == 0);

  // Decoding does not compile again either, here with a window and keys that all queries see.
  const auto decoded = [&](int i) {
    problem.pattern = causal() & (window(1 + i % 389, 0) | global(1 + i % 41));
    problem.seq_q = 1;
    problem.seq_k = 1000 + i;
    return problem;
  };
  CHECK(compiled(device, 1, decoded) == 1);
  CHECK(compiled(device, 1000, decoded) == 0);
  const ListCounters counters = device.list_counters();
  CHECK(counters.device.entries <= options.device_lists.entries);
  CHECK(counters.device.bytes <= options.device_lists.bytes);
}

}  // namespace
}  // namespace annulus
