// Rows that several CTAs compute in parts, compared with the oracle.

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "annulus/types.h"
#include "attention/on_device.h"
#include "support/options.h"

namespace {

using namespace annulus;
using test::Case;
using test::check;
using test::device;
using test::DeviceAnswer;
using test::DeviceCase;
using test::problem_of;

// Configurations of the family that the device supports. The last wgmma configuration has two tiles
// per step and two heads per CTA.
std::vector<std::string> configs() {
  if (device().info().architecture == "sm_90a") {
    return {"wgmma m128 n64 w8 s2 b2", "wgmma m128 n128 w8 s2", "wgmma m64 n64 w8 s2 b2 h2"};
  }
  return {"mma m64 n64 w4 s2 x3", "mma m128 n64 w4 s2 x2"};
}

// Rows with 24 blocks, 1 block, 9 blocks and no blocks.
Pattern uneven_blocks(std::int64_t rows, std::int64_t columns) {
  BlockLayout layout;
  layout.block_rows = layout.block_columns = 32;
  layout.seq_q = rows;
  layout.seq_k = columns;
  layout.indptr.push_back(0);
  for (std::int64_t row = 0; row < layout.rows(); ++row) {
    const std::int64_t step = row % 4 == 0 ? 1 : row % 4 == 1 ? layout.columns() : 3;
    for (std::int64_t column = row % 4 == 3 ? layout.columns() : 0; column < layout.columns();
         column += step) {
      layout.indices.push_back(static_cast<std::int32_t>(column));
    }
    layout.indptr.push_back(static_cast<std::int64_t>(layout.indices.size()));
  }
  return blocks(std::move(layout));
}

std::vector<Problem> problems() {
  std::vector<Problem> made = {
      problem_of(300, 700, 64, 64, window(31, 0) | global(16)),  // one long row
      problem_of(3, 760, 64, 64, dense()),                       // few queries
      problem_of(260, 500, 64, 64, causal()),                    // rows of every length
      problem_of(256, 768, 64, 64, uneven_blocks(256, 768)),     // a list with masks
      problem_of(200, 640, 64, 64, heads({causal(), sink(70), dense(), window(9, 9)})),
      problem_of(150, 400, 64, 64, documents({40, 300, 330})),
  };
  made[2].q0 = -70;  // rows that see nothing
  for (Problem& problem : made) {
    problem.heads = 4;
    problem.kv_heads = 2;
  }
  return made;
}

TEST_CASE("rows that are split give the oracle's answer") {
  std::uint64_t seed = 60;
  int split = 0;
  for (const std::string& config : configs()) {
    const bool together = config.find(" h2") != std::string::npos;
    for (Problem problem : problems()) {
      if (together && problem.pattern.distinct_heads(4) > 1) continue;
      CAPTURE(config);
      CAPTURE(problem.pattern.to_string());
      PlanOptions options;
      options.config = config;
      options.kv_splits = 2 + static_cast<int>(seed % 3) * 2;
      problem.batch = seed % 2 == 0 ? 1 : 2;
      if (seed % 4 == 1) problem.score.sink_logit = {0.5, -1};
      if (seed % 4 == 2) problem.carry_in = true;
      if (seed % 4 == 3) {
        problem.carry_in = problem.carry_out = true;
        problem.want_lse = false;
      }
      const Case c = test::make_case(problem, seed++);
      const Plan plan = device().plan(problem, options);
      DeviceCase memory(device(), c);
      const DeviceMemory workspace = device().allocate(plan.workspace_bytes());
      plan.run(nullptr, memory.operands(), workspace.data());
      check(c, memory.answer());
      if (plan.workspace_bytes() == 0) continue;  // a row of one step is not split
      ++split;
      CHECK(plan.info().launches == 2);
      CHECK_THROWS_AS(plan.run(nullptr, memory.operands()), Error);
    }
  }
  CHECK(split >= 6);
}

TEST_CASE("the parts of a row are joined in one order, whatever order they were made in") {
  if (!device().info().simulated) return;
  Problem problem = problem_of(200, 900, 64, 64, window(31, 31) | global(8));
  problem.heads = 2;
  const Case c = test::make_case(problem, 80);
  PlanOptions options;
  options.config = configs().front();
  options.kv_splits = 5;
  options.max_multiprocessors = 3;
  const Plan plan = device().plan(problem, options);
  REQUIRE(plan.workspace_bytes() > 0);
  DeviceCase memory(device(), c);
  const DeviceMemory workspace = device().allocate(plan.workspace_bytes());
  plan.run(nullptr, memory.operands(), workspace.data());
  const DeviceAnswer first = memory.answer();
  check(c, first);
  const int orders = test::options().orders > 0 ? test::options().orders : 5;
  for (int order = 1; order <= orders; ++order) {
    SimulationOptions simulation;
    simulation.seed = test::options().seed * 1000 + static_cast<std::uint64_t>(order);
    device().set_simulation(simulation);
    memory.reset();
    plan.run(nullptr, memory.operands(), workspace.data());
    CAPTURE(order);
    CHECK(memory.answer() == first);
  }
  device().set_simulation({});
}

TEST_CASE("branches of a sum share the workspace with the parts of their rows") {
  Problem problem = problem_of(100, 600, 64, 64, sum({causal(), sink(300)}));
  const Case c = test::make_case(problem, 81);
  PlanOptions options;
  options.config = configs().front();
  options.kv_splits = 3;
  check(c, test::run_case(device(), c, options));
}

TEST_CASE("a workspace that is missing or not aligned is refused before anything is launched") {
  const Case c = test::make_case(problem_of(200, 500, 64, 64, causal()), 83);
  PlanOptions options;
  options.config = configs().front();
  options.kv_splits = 3;
  const Plan plan = device().plan(c.problem, options);
  const DeviceMemory workspace = device().allocate(plan.workspace_bytes() + 16);
  DeviceCase memory(device(), c);
  auto* const begin = static_cast<std::byte*>(workspace.data());
  const auto refused = [&](void* given, const std::string& part) {
    try {
      plan.run(nullptr, memory.operands(), given);
      FAIL("ran");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kInvalidArgument);
      CHECK_MESSAGE(std::string(error.what()).find(part) != std::string::npos, error.what());
    }
  };
  refused(nullptr, "bytes of workspace, but none was given");
  for (const int off : {1, 4, 8}) refused(begin + off, "is not a multiple of 16 bytes");
  plan.run(nullptr, memory.operands(), begin + 16);  // the device still works
  check(c, memory.answer());
}

TEST_CASE("O may be Q where rows are split") {
  Problem problem = problem_of(200, 500, 64, 64, causal());
  const Case c = test::make_case(problem, 82);
  PlanOptions options;
  options.config = configs().front();
  options.kv_splits = 3;
  const Plan plan = device().plan(problem, options);
  REQUIRE(plan.workspace_bytes() > 0);
  const DeviceMemory workspace = device().allocate(plan.workspace_bytes());
  DeviceCase memory(device(), c);
  plan.run(nullptr, memory.operands(), workspace.data());
  const test::HostTensor expected = memory.answer().o;
  Operands in_place = memory.operands();
  in_place.o = const_cast<void*>(in_place.q);
  plan.run(nullptr, in_place, workspace.data());
  std::vector<std::uint16_t> q(c.q.bits.size());
  device().copy_to_host(q.data(), in_place.o, q.size() * 2);
  CHECK(q == expected.bits);
}

}  // namespace
