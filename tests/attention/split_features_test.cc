// Rows that several CTAs compute in parts, in combination with everything else that a plan can
// have: random problems, e4m3, score expressions, lists that plans share, and every order in which
// copies and products may complete.

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "annulus/types.h"
#include "api/impl.h"
#include "attention/on_device.h"
#include "device/simulator.h"
#include "support/options.h"
#include "support/random_score.h"

namespace {

using namespace annulus;
using test::Case;
using test::check;
using test::device;
using test::DeviceAnswer;
using test::problem_of;

bool has_wgmma() { return device().info().architecture == "sm_90a"; }

bool says(const Plan& plan, const std::string& part) {
  return std::ranges::any_of(plan.info().decisions, [&](const std::string& line) {
    return line.find(part) != std::string::npos;
  });
}

TEST_CASE("random problems match the oracle however their rows are split") {
  const int count = test::options().problems > 0 ? test::options().problems : 8;
  int split = 0;
  for (int index = 0; index < count; ++index) {
    test::CaseLimits limits;
    limits.float8 = has_wgmma() && index % 3 == 2;
    if (test::options().length > 0) limits.max_length = test::options().length;
    const auto number = static_cast<std::uint64_t>(index);
    Case c = test::random_case(test::options().seed + 90, number, limits);
    if (index % 4 == 1) {
      base::Random random(test::options().seed + number);
      c.problem.score.score_mod = test::tame_score_expression(random, 2);
    }
    PlanOptions options;
    options.kv_splits = 2 + index % 4;
    CAPTURE(index);
    CAPTURE(c.text);
    const Plan plan = device().plan(c.problem, options);
    split += says(plan, "joins in their order") ? 1 : 0;
    test::DeviceCase memory(device(), c);
    const DeviceMemory workspace = device().allocate(plan.workspace_bytes());
    REQUIRE_NOTHROW(plan.run(nullptr, memory.operands(), workspace.data()));
    check(c, memory.answer());
  }
  CHECK(split >= count / 4);
}

TEST_CASE("parts of e4m3 have a unit of V of their own, and the state has none") {
  if (!has_wgmma()) return;
  Problem problem = problem_of(140, 900, 128, 128, causal());
  problem.dtype = Dtype::kFloat8E4M3;
  problem.heads = 2;
  problem.scale_blocks = {32, 64, 64};
  for (const bool carry : {false, true}) {
    problem.carry_in = problem.carry_out = carry;
    problem.want_lse = !carry;
    Case c = test::make_case(problem, 91);
    // The scales differ greatly from part to part.
    for (std::size_t i = 0; i < c.scale_v.size(); ++i) c.scale_v[i] = i % 4 < 2 ? 1e-3f : 1e3f;
    PlanOptions options;
    options.config = "wgmma8 m128 n128 w8 s2";
    options.kv_splits = 4;
    const Plan plan = device().plan(problem, options);
    REQUIRE(says(plan, "joins in their order"));
    check(c, test::run_case(device(), c, options));
  }
}

TEST_CASE("a score that hides all keys of a part leaves the others") {
  Problem problem = problem_of(40, 900, 64, 64, dense());
  problem.heads = 2;
  problem.score =
      Score::parse("sink_logit(0.5), score_mod(where((k < 100) & (mod(q, 3) != 0), score, -inf))");
  const Case c = test::make_case(problem, 92);
  PlanOptions options;
  options.kv_splits = 4;
  REQUIRE(says(device().plan(problem, options), "joins in their order"));
  check(c, test::run_case(device(), c, options));
}

TEST_CASE("a decode that grows keeps its list while its rows are split") {
  DeviceOptions opened;
  opened.name = test::device_name();
  const Device fresh = Device::open(opened);
  PlanOptions options;
  options.kv_splits = 3;
  int split = 0;
  for (std::int64_t keys = 500; keys < 580; keys += 8) {
    CAPTURE(keys);
    Problem problem = problem_of(1, keys, 64, 64, causal() & (window(400, 0) | global(10)));
    problem.heads = 4;
    problem.kv_heads = 2;
    const Case c = test::make_case(problem, static_cast<std::uint64_t>(keys));
    split += says(fresh.plan(problem, options), "joins in their order") ? 1 : 0;
    check(c, test::run_case(fresh, c, options));
  }
  CHECK(split == 10);
  CHECK(fresh.list_counters().host.misses <= 3);
  CHECK(fresh.list_counters().device.misses == fresh.list_counters().host.misses);
}

TEST_CASE("what is fetched ahead has the kernel that joins as well") {
  DeviceOptions opened;
  opened.name = test::device_name();
  const Device fresh = Device::open(opened);
  PlanOptions options;
  options.kv_splits = 2;
  const Problem problem = problem_of(1, 700, 64, 64, dense());
  fresh.prefetch(problem, options);
  const std::size_t fetched = api::inside(fresh).kernels->size();
  CHECK(fetched == 2);
  CHECK(fresh.plan(problem, options).info().launches == 2);
  CHECK(api::inside(fresh).kernels->size() == fetched);
}

TEST_CASE("copies and products may complete early, late or between: the bits are the same") {
  if (!device().info().simulated) return;
  const device::Context& context = *api::inside(device()).context;
  const abi::SimulatorOptions usual = *device::simulator_options(context);
  for (const Dtype dtype : {Dtype::kBfloat16, Dtype::kFloat8E4M3}) {
    if (dtype == Dtype::kFloat8E4M3 && !has_wgmma()) continue;
    Problem problem = problem_of(130, 700, 64, 64, causal() & (window(300, 0) | global(70)));
    problem.dtype = dtype;
    problem.heads = 2;
    problem.kv_heads = 1;
    const Case c = test::make_case(problem, 93);
    PlanOptions options;
    options.kv_splits = 3;
    options.max_multiprocessors = 2;  // persistent CTAs take several parts
    const DeviceAnswer first = test::run_case(device(), c, options);
    check(c, first);
    for (const std::uint32_t landing : {0u, 1u, 2u}) {
      for (const std::uint32_t products : {1u, 2u}) {
        if (products == 2 && !has_wgmma()) continue;
        CAPTURE(landing);
        CAPTURE(products);
        abi::SimulatorOptions changed = usual;
        changed.seed = test::options().seed + landing;
        changed.landing = landing;
        changed.products = products;
        REQUIRE(device::set_simulator_options(context, changed));
        CHECK(test::run_case(device(), c, options) == first);
      }
    }
    REQUIRE(device::set_simulator_options(context, usual));
  }
}

TEST_CASE("what is not split says so, or is refused") {
  Problem problem = problem_of(64, 2048, 64, 64, dense());
  PlanOptions options;
  options.kv_splits = -1;
  CHECK_THROWS_AS(device().plan(problem, options), Error);
  options.kv_splits = 1;
  CHECK_FALSE(says(device().plan(problem, options), "long tile rows"));

  options.kv_splits = 5;
  Problem one_step = problem;
  one_step.seq_k = 16;
  const Plan whole = device().plan(one_step, options);
  CHECK(says(whole, "not split into 5 as requested"));
  CHECK(whole.workspace_bytes() == 0);

  Selection selection;
  selection.block_rows = selection.block_columns = 64;
  selection.max_blocks = 2;
  CHECK_THROWS_WITH(device().plan(problem, selection, options),
                    doctest::Contains("rows of a selection are not split"));
  options.kv_splits = 0;
  CHECK(says(device().plan(problem, selection, options), "long tile rows: not split"));

  options.kv_splits = 1 << 20;
  problem.seq_q = problem.seq_k = 1 << 20;
  CHECK_THROWS_WITH(device().plan(problem, options), doctest::Contains("2^24"));
}

}  // namespace
