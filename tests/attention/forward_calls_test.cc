// Plans and runs as calls: with nothing to launch, captured in a graph, and rejected.

#include <doctest/doctest.h>

#include "annulus/types.h"
#include "attention/on_device.h"

namespace {

using namespace annulus;
using test::Case;
using test::device;
using test::DeviceAnswer;
using test::DeviceCase;
using test::problem_of;

TEST_CASE("no rows and no batches launch nothing") {
  for (const bool rows : {false, true}) {
    Problem problem = problem_of(rows ? 0 : 10, 10, 64, 64, dense());
    if (!rows) problem.batch = 0;
    const Plan plan = device().plan(problem);
    CHECK(plan.info().launches == 0);
    CHECK(plan.info().source == "none");
    device().counters(true);
    CHECK_NOTHROW(plan.run(nullptr, [] {
      Operands none;
      return none;
    }()));
    if (device().info().simulated) CHECK(device().counters()[0].second == 0);
  }
}

void check_replay(const PlanOptions& options) {
  const Problem problem = problem_of(90, 130, 64, 64, causal());
  const Case c = test::make_case(problem, 12);
  const Plan plan = device().plan(problem, options);
  const DeviceMemory workspace = device().allocate(plan.workspace_bytes());
  DeviceCase memory(device(), c);
  plan.run(nullptr, memory.operands(), workspace.data());
  const DeviceAnswer expected = memory.answer();
  memory.check_replay([&](void* stream) { plan.run(stream, memory.operands(), workspace.data()); },
                      expected);
}

TEST_CASE("a run can be captured in a graph and replayed, on a stream of the caller") {
  check_replay({});
  PlanOptions split;
  split.kv_splits = 2;
  check_replay(split);
}

TEST_CASE("operands that break a rule are refused before anything is launched") {
  Problem problem = problem_of(40, 50, 64, 64, dense());
  const Case c = test::make_case(problem, 11);
  const Plan plan = device().plan(problem);
  DeviceCase memory(device(), c);
  device().counters(true);
  Operands operands = memory.operands();
  operands.q = static_cast<const char*>(operands.q) + 2;
  CHECK_THROWS_AS(plan.run(nullptr, operands), Error);
  operands = memory.operands();
  operands.k_strides.row = 12;
  CHECK_THROWS_AS(plan.run(nullptr, operands), Error);
  operands = memory.operands();
  operands.lse = nullptr;
  CHECK_THROWS_AS(plan.run(nullptr, operands), Error);
  if (device().info().simulated) CHECK(device().counters()[0].second == 0);
}

TEST_CASE("a layout of the wrong number of heads and two layouts are refused") {
  BlockLayout layout;
  layout.block_rows = layout.block_columns = 64;
  layout.seq_q = layout.seq_k = 64;
  layout.heads = 3;
  layout.indptr = {0, 1, 2, 3};
  layout.indices = {0, 0, 0};
  Problem problem = problem_of(64, 64, 64, 64, blocks(layout));
  problem.heads = 2;
  CHECK_THROWS_AS(device().plan(problem), Error);
  problem.heads = 3;
  CHECK_NOTHROW(device().plan(problem));
  PlanOptions options;
  options.block_rows = -1;
  CHECK_THROWS_AS(device().plan(problem, options), Error);
  options = {};
  options.config = "no such";
  CHECK_THROWS_AS(device().plan(problem, options), Error);
}

}  // namespace
