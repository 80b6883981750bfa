// Plans that share lists of tiles, on the device that --device names.

#include <doctest/doctest.h>

#include <memory>
#include <vector>

#include "attention/on_device.h"
#include "support/threads.h"

namespace annulus {
namespace {

using test::Case;

const Pattern& pattern() {
  static const Pattern made = causal() & (window(70, 0) | global(10));
  return made;
}

Device open(const LayoutCacheLimits& device_lists = {}) {
  DeviceOptions options;
  options.name = test::device_name();
  options.device_lists = device_lists;
  return Device::open(options);
}

Case decode(std::int64_t keys, std::uint64_t seed) {
  Problem problem = test::problem_of(1, keys, 64, 64, pattern());
  problem.heads = 4;
  problem.kv_heads = 2;
  return test::make_case(problem, seed);
}

TEST_CASE("a decode that grows by a token keeps its list, and every step is right") {
  const Device device = open();
  for (std::int64_t keys = 250; keys < 330; keys += 3) {
    const Case c = decode(keys, static_cast<std::uint64_t>(keys));
    CAPTURE(keys);
    test::check(c, test::run_case(device, c));
  }
  const ListCounters counters = device.list_counters();
  CHECK(counters.host.misses <= 3);
  CHECK(counters.host.hits + counters.host.misses == 27);
  CHECK(counters.device.misses == counters.host.misses);
  CHECK(counters.device.hits == counters.host.hits);
  CHECK(counters.device.entries == counters.device.misses);
  CHECK(counters.device.bytes > 0);
}

TEST_CASE("plans keep lists that the cache has dropped") {
  const Device device = open({std::int64_t{1} << 20, 1});
  std::vector<Plan> plans;
  std::vector<std::unique_ptr<Case>> cases;
  for (const std::int64_t keys : {100, 300, 500}) {
    cases.push_back(std::make_unique<Case>(decode(keys, 4)));
    plans.push_back(device.plan(cases.back()->problem));
  }
  CHECK(device.list_counters().device.evictions == 2);
  CHECK(device.list_counters().device.entries == 1);
  for (std::size_t i = 0; i < plans.size(); ++i) {
    test::DeviceCase memory(device, *cases[i]);
    plans[i].run(nullptr, memory.operands());
    test::check(*cases[i], memory.answer());
  }
}

TEST_CASE("what was fetched ahead is found, and nothing is made again") {
  const Device device = open();
  const Case c = decode(400, 5);
  device.prefetch(c.problem);
  CHECK(device.list_counters().device.misses == 1);
  const Plan plan = device.plan(c.problem);
  CHECK(plan.info().source == "memory");
  CHECK(device.list_counters().device.misses == 1);
  CHECK(device.list_counters().device.hits == 1);
  test::DeviceCase memory(device, c);
  plan.run(nullptr, memory.operands());
  test::check(c, memory.answer());
  // This plan is prefetched, and never used.
  device.prefetch(decode(600, 5).problem);
}

TEST_CASE("threads plan, fetch ahead and run lengths of one grid and of others") {
  const Device device = open({std::int64_t{1} << 20, 2});
  std::vector<std::unique_ptr<Case>> cases;
  for (int i = 0; i < 4; ++i) cases.push_back(std::make_unique<Case>(decode(200 + 50 * i, 6)));
  std::vector<test::DeviceAnswer> answers(cases.size());
  test::on_threads(cases.size(), [&](std::size_t i) {
    device.prefetch(cases[(i + 1) % cases.size()]->problem);
    for (int round = 0; round < 3; ++round) answers[i] = test::run_case(device, *cases[i]);
  });
  for (std::size_t i = 0; i < cases.size(); ++i) test::check(*cases[i], answers[i]);
}

}  // namespace
}  // namespace annulus
