// Blocks that the device chooses, and attention over them, compared with the oracles of both.

#include <doctest/doctest.h>

#include "annulus/types.h"
#include "selection/choosing.h"
#include "selection/selection_plan.h"
#include "support/options.h"

namespace {

using namespace annulus;
using test::Case;
using test::ChosenAnswer;
using test::device;
using test::DeviceAnswer;
using test::DeviceCase;
using test::problem_of;

std::int64_t pick(base::Random& random, std::int64_t low, std::int64_t high) {
  return low + random.below(static_cast<std::uint32_t>(high - low + 1));
}

Selection random_selection(base::Random& random, const Problem& problem) {
  const std::int64_t sizes[] = {8, 16, 24, 32, 48, 64, 96, 128, 256};
  Selection selection;
  selection.block_rows = sizes[random.below(std::size(sizes))];
  selection.block_columns = sizes[random.below(std::size(sizes))];
  const std::int64_t columns = std::max<std::int64_t>(1, selection.columns(problem.seq_k));
  selection.rule = random.below(2) == 0 ? SelectionRule::kTopK : SelectionRule::kTopP;
  selection.max_blocks = pick(random, 1, columns + 1);
  if (selection.rule == SelectionRule::kTopP) {
    if (random.below(2) == 0) selection.max_blocks = 0;
    selection.mass = random.below(5) == 0 ? 1.0 : 0.05 + 0.9 * random.uniform();
  }
  selection.pool = random.below(2) == 0 ? Pool::kMean : Pool::kMax;
  if (random.below(3) == 0) {
    selection.pool = Pool::kAntidiagonal;
    selection.stride = std::int64_t{4} << random.below(3);
    const std::int64_t sizes_with_cells[] = {16, 32, 64, 128};
    selection.block_rows = sizes_with_cells[random.below(4)];
    selection.block_columns = sizes_with_cells[random.below(4)];
  }
  if (random.below(3) == 0) {
    selection.coarse_factor = pick(random, 2, 4);
    selection.coarse_blocks = pick(random, 1, columns / selection.coarse_factor + 1);
  }
  selection.sink_blocks = pick(random, 0, 2);
  selection.diagonal_blocks = pick(random, 0, 2);
  return selection;
}

bool has_blocks(const Pattern& pattern) {
  return pattern.to_string().find("blocks(\"") != std::string::npos;
}

// A random problem that supports selections.
Case choosable_case(std::uint64_t index) {
  for (std::uint64_t turn = 0;; ++turn) {
    const Case c = test::random_case(test::options().seed + 77, index * 100 + turn);
    if (c.problem.pattern.branches().size() == 1 && !has_blocks(c.problem.pattern)) return c;
  }
}

TEST_CASE("the share of a row's mass is exact for rows of any length") {
  base::Random random(35);
  for (int i = 0; i < 2000; ++i) {
    const std::uint64_t mass = random.next() >> random.below(64);
    const std::uint64_t target = random.below((1u << 20) + 1);
    __extension__ using Wide = unsigned __int128;
    const Wide exact = (static_cast<Wide>(mass) * target + (1u << 20) - 1) >> 20;
    CHECK(selection::wanted_mass(mass, target) == static_cast<std::uint64_t>(exact));
  }
}

TEST_CASE("the device chooses the oracle's blocks, and attention is exact over them") {
  const int count = test::options().problems > 0 ? test::options().problems : 16;
  for (int index = 0; index < count; ++index) {
    Case c = choosable_case(static_cast<std::uint64_t>(index));
    base::Random random(static_cast<std::uint64_t>(index) + 1000 * test::options().seed);
    const Selection selection = random_selection(random, c.problem);
    CAPTURE(index);
    CAPTURE(c.text);
    CAPTURE(selection.block_rows);
    CAPTURE(selection.block_columns);
    CAPTURE(selection.max_blocks);
    CAPTURE(selection.mass);
    ChosenAnswer ran;
    REQUIRE_NOTHROW(ran = test::run_chosen(device(), c, selection));
    const selection::HostBlocks blocks = selection::reference(c.problem, selection, c.inputs());
    if (c.problem.seq_k > 0) CHECK(ran.chosen == test::indices_of(blocks));

    const bool default_positions = c.problem.q0.value_or(c.problem.seq_k - c.problem.seq_q) ==
                                       c.problem.seq_k - c.problem.seq_q &&
                                   c.problem.k0.value_or(0) == 0;
    if (!default_positions || c.problem.seq_q == 0 || c.problem.seq_k == 0) continue;
    if (!c.problem.carry_in && !c.problem.carry_out) {
      for (std::int64_t b = 0; b < c.problem.batch; ++b) {
        test::check_batch(c, selection, blocks, ran.answer, b);
      }
    }
    if (c.problem.batch > 1) continue;
    // A list of the same blocks that the host makes gives the same bits with the same tiles.
    PlanOptions options;
    options.config = device().plan(c.problem, selection).info().config;
    Case listed = c;
    listed.problem.pattern =
        c.problem.pattern & annulus::blocks(selection::layout_of(c.problem, selection, blocks, 0));
    CHECK(test::run_case(device(), listed, options) == ran.answer);
  }
}

TEST_CASE("blocks that the caller lists are attended to, whatever else the list holds") {
  Problem problem = problem_of(200, 330, 64, 64, causal());
  problem.heads = 4;
  problem.kv_heads = 2;
  problem.batch = 2;
  const Case c = test::make_case(problem, 3);
  Selection selection;
  selection.block_rows = 64;
  selection.block_columns = 32;
  selection.rule = SelectionRule::kGiven;
  selection.max_blocks = 5;
  base::Random random(9);
  std::vector<std::int32_t> given;
  for (std::int64_t i = 0; i < 2 * 4 * selection.rows(200) * 5; ++i) {
    const std::int32_t outside[] = {-1, -2000000000, 11, 2000000000, 3, 3};
    given.push_back(random.below(2) == 0 ? static_cast<std::int32_t>(random.below(11))
                                         : outside[random.below(6)]);
  }
  const ChosenAnswer ran = test::run_chosen(device(), c, selection, given);
  const selection::HostBlocks blocks =
      selection::reference(problem, selection, c.inputs(), given.data());
  CHECK(ran.chosen == test::indices_of(blocks));
  for (std::int64_t b = 0; b < 2; ++b) test::check_batch(c, selection, blocks, ran.answer, b);

  SUBCASE("what one run chose can be given to another") {
    Selection again = selection;
    again.max_blocks = selection.columns(330);
    again.sink_blocks = again.diagonal_blocks = 0;
    const ChosenAnswer repeated = test::run_chosen(device(), c, again, ran.chosen);
    CHECK(repeated.chosen == ran.chosen);
    CHECK(repeated.answer == ran.answer);
  }
}

TEST_CASE("a pattern that shows nothing leaves nothing to choose") {
  Problem problem = problem_of(70, 90, 64, 64, ~dense());
  const Case c = test::make_case(problem, 4);
  Selection selection;
  selection.block_rows = selection.block_columns = 16;
  selection.max_blocks = 2;
  const ChosenAnswer ran = test::run_chosen(device(), c, selection);
  CHECK(std::all_of(ran.chosen.begin(), ran.chosen.end(), [](int index) { return index == -1; }));
  CHECK(std::all_of(ran.answer.o.bits.begin(), ran.answer.o.bits.end(),
                    [](std::uint16_t bits) { return bits == 0; }));
}

TEST_CASE("equal scores are decided by index") {
  Problem problem = problem_of(64, 640, 64, 64, dense());
  Case c = test::make_case(problem, 5);
  std::fill(c.k.bits.begin(), c.k.bits.end(), std::uint16_t{0x3f80});
  Selection selection;
  selection.block_rows = selection.block_columns = 64;
  selection.sink_blocks = selection.diagonal_blocks = 0;
  selection.max_blocks = 3;
  ChosenAnswer ran = test::run_chosen(device(), c, selection);
  CHECK(ran.chosen == std::vector<std::int32_t>{0, 1, 2, -1, -1, -1, -1, -1, -1, -1});
  // Ten blocks have equal masses, so a mass of 0.45 needs five of them.
  selection.rule = SelectionRule::kTopP;
  selection.mass = 0.45;
  selection.max_blocks = 0;
  ran = test::run_chosen(device(), c, selection);
  CHECK(ran.chosen == std::vector<std::int32_t>{0, 1, 2, 3, 4, -1, -1, -1, -1, -1});
}

TEST_CASE("scores that are no numbers come last, and only tiles that read them are tainted") {
  Problem problem = problem_of(64, 256, 64, 64, dense());
  Case c = test::make_case(problem, 6);
  c.k.bits[64 * 64 + 3] = 0x7fc0;  // NaN in block 1
  Selection selection;
  selection.block_rows = selection.block_columns = 64;
  selection.sink_blocks = selection.diagonal_blocks = 0;
  selection.max_blocks = 3;
  const ChosenAnswer ran = test::run_chosen(device(), c, selection);
  CHECK(ran.chosen == std::vector<std::int32_t>{0, 2, 3, -1});
  test::check_batch(c, selection, selection::reference(problem, selection, c.inputs()), ran.answer,
                    0);
}

TEST_CASE("a run that chooses can be captured in a graph, and any order gives the same bits") {
  Problem problem = problem_of(150, 400, 64, 64, causal() & (window(300, 0) | sink(10)));
  problem.heads = 2;
  const Case c = test::make_case(problem, 12);
  Selection selection;
  selection.block_rows = 32;
  selection.block_columns = 48;
  selection.rule = SelectionRule::kTopP;
  selection.mass = 0.6;
  const Plan plan = device().plan(problem, selection);
  DeviceCase memory(device(), c);
  const DeviceMemory workspace = device().allocate(plan.workspace_bytes());
  plan.run(nullptr, memory.operands(), workspace.data());
  const DeviceAnswer expected = memory.answer();
  test::check_batch(c, selection, selection::reference(problem, selection, c.inputs()), expected,
                    0);

  memory.check_replay([&](void* stream) { plan.run(stream, memory.operands(), workspace.data()); },
                      expected);
  if (!device().info().simulated) return;
  const int orders = test::options().orders > 0 ? test::options().orders : 4;
  for (int order = 0; order <= orders; ++order) {
    SimulationOptions simulation;
    simulation.checked = order > 0;
    simulation.seed = test::options().seed * 1000 + static_cast<std::uint64_t>(order);
    device().set_simulation(simulation);
    memory.reset();
    plan.run(nullptr, memory.operands(), workspace.data());
    CAPTURE(order);
    CHECK(memory.answer() == expected);
  }
  device().set_simulation({});
}

void refused(const Problem& problem, const Selection& selection, ErrorCode code) {
  try {
    device().plan(problem, selection);
    FAIL_CHECK("nothing was thrown");
  } catch (const Error& error) {
    CHECK_MESSAGE(error.code() == code, error.what());
  }
}

TEST_CASE("what cannot be chosen is refused with a typed error") {
  const Problem problem = problem_of(100, 100, 64, 64, causal());
  const auto with = [](auto change) {
    Selection selection;
    selection.max_blocks = 2;
    change(selection);
    return selection;
  };
  const auto invalid = ErrorCode::kInvalidArgument;
  refused(problem, with([](Selection& s) { s.block_rows = 0; }), invalid);
  refused(problem, with([](Selection& s) { s.block_columns = -8; }), invalid);
  refused(problem, with([](Selection& s) { s.max_blocks = 0; }), invalid);
  refused(problem, with([](Selection& s) { s.max_blocks = INT64_MAX; }), invalid);
  refused(problem, with([](Selection& s) { s.sink_blocks = -1; }), invalid);
  refused(problem, with([](Selection& s) { s.rule = static_cast<SelectionRule>(9); }), invalid);
  refused(problem, with([](Selection& s) { s.pool = static_cast<Pool>(0); }), invalid);
  for (const std::int64_t stride : {0, 1, 7, 48, 256}) {
    CAPTURE(stride);
    refused(problem, with([&](Selection& s) {
              s.pool = Pool::kAntidiagonal;
              s.stride = stride;
            }),
            invalid);
  }
  refused(problem, with([](Selection& s) {
            s.pool = Pool::kAntidiagonal;
            s.stride = s.block_rows = s.block_columns = 131072;
          }),
          invalid);
  refused(problem, with([](Selection& s) { s.coarse_factor = 1; }), invalid);
  refused(problem, with([](Selection& s) { s.coarse_factor = 2; }), invalid);
  refused(problem, with([](Selection& s) {
            s.rule = SelectionRule::kTopP;
            s.mass = 0;
          }),
          invalid);
  refused(problem, with([](Selection& s) {
            s.rule = SelectionRule::kTopP;
            s.mass = std::numeric_limits<double>::quiet_NaN();
          }),
          invalid);
  Problem summed = problem;
  summed.pattern = sum({causal(), sink(4)});
  refused(summed, with([](Selection&) {}), ErrorCode::kUnsupported);

  Problem turning = problem;
  turning.batch = 2;
  turning.pattern = batches({causal(), sink(40)});
  refused(turning, with([](Selection&) {}), ErrorCode::kUnsupported);
  turning.pattern = batches({causal(), causal()});
  CHECK_NOTHROW(device().plan(turning, with([](Selection&) {})));
  turning.pattern = batches({causal(), sink(40)});
  turning.batch = 1;
  CHECK_NOTHROW(device().plan(turning, with([](Selection&) {})));

  // Maps of blocks that are too large for any host.
  for (const std::int64_t length : {std::int64_t{1} << 20, kMaxPosition}) {
    refused(problem_of(length, length, 64, 64, causal()),
            with([](Selection& s) { s.block_rows = s.block_columns = 1; }),
            ErrorCode::kUnsupported);
  }
  Problem many = problem;
  many.heads = many.kv_heads = 40000;
  refused(many, with([](Selection&) {}), ErrorCode::kUnsupported);

  const Selection selection = with([](Selection&) {});
  const Plan plan = device().plan(problem, selection);
  const Case c = test::make_case(problem, 1);
  DeviceCase memory(device(), c);
  const DeviceMemory workspace = device().allocate(plan.workspace_bytes());
  device().counters(true);
  CHECK_THROWS_AS(plan.run(nullptr, memory.operands()), Error);
  SelectionBuffers buffers;
  buffers.given = static_cast<const std::int32_t*>(workspace.data());
  CHECK_THROWS_AS(plan.run(nullptr, memory.operands(), workspace.data(), buffers), Error);
  buffers = {};
  buffers.chosen = static_cast<std::int32_t*>(workspace.data());
  CHECK_THROWS_AS(plan.run(nullptr, memory.operands(), workspace.data(), buffers), Error);
  const Plan fixed = device().plan(problem);
  CHECK_THROWS_AS(fixed.run(nullptr, memory.operands(), nullptr, {}), Error);
  if (device().info().simulated) CHECK(device().counters()[0].second == 0);
}

}  // namespace
