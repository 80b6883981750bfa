// Patterns that need several launches, or information about the whole sequence: sums, and chunks of
// a sequence.

#include "annulus/types.h"
#include "attention/on_device.h"

namespace {

using namespace annulus;
using test::Case;
using test::check;
using test::compare;
using test::device;
using test::DeviceAnswer;
using test::DeviceCase;
using test::problem_of;

TEST_CASE("a key counts once for each branch of a sum that sees it") {
  // Two branches that both see the keys near the diagonal, like LongNet's segments.
  Problem problem = problem_of(230, 230, 64, 64,
                               sum({causal() & segment(64, 1), causal() & segment(128, 2),
                                    heads({sink(7), window(30, 0)})}));
  problem.heads = 4;
  for (const int kind : {0, 1, 2, 3}) {
    CAPTURE(kind);
    problem.carry_in = kind % 2 == 1;
    problem.carry_out = kind >= 2;
    problem.want_lse = !problem.carry_out;
    const Case c = test::make_case(problem, 31);
    const Plan plan = device().plan(problem);
    CHECK(plan.info().launches == 3);
    // If the caller's state is written anyway, it carries the state between branches.
    CHECK(plan.workspace_bytes() == (problem.carry_out ? 0u : 4u * 230 * (64 + 2) * 4));
    device().counters(true);
    const DeviceAnswer answer = test::run_case(device(), c);
    if (device().info().simulated) CHECK(device().counters()[0].second == 3);
    check(c, answer);
    if (kind > 0) continue;
    // As a union of sets, the same pattern gives another answer.
    Problem set = problem;
    set.pattern = problem.pattern.branches()[0] | problem.pattern.branches()[1] |
                  problem.pattern.branches()[2];
    CHECK_FALSE(compare(c, test::run_case(device(), test::make_case(set, 31))).within_tolerance);
    CHECK_THROWS_AS(plan.run(nullptr, DeviceCase(device(), c).operands()), Error);
  }
}

TEST_CASE("LongNet by name, as a sum over every one of its rates") {
  Problem problem = problem_of(160, 420, 64, 64, preset("longnet"));
  problem.heads = 12;
  const Case c = test::make_case(problem, 32);
  check(c, test::run_case(device(), c));
}

TEST_CASE("chunks of keys choose at random as the whole sequence does") {
  Problem whole = problem_of(90, 300, 64, 64, causal() & (random(2, 9, 32) | window(20, 0)));
  whole.heads = 2;
  whole.layer = 5;
  whole.want_lse = false;
  const Case c = test::make_case(whole, 33);
  check(c, test::run_case(device(), c));
  // Computes the first 200 keys, and then the remaining keys with the state of the first launch.
  Problem first = whole;
  first.seq_k = 200;
  first.q0 = whole.q_position();
  first.total_k = 300;
  first.carry_out = true;
  Problem second = whole;
  second.seq_k = 100;
  second.q0 = whole.q_position();
  second.k0 = 200;
  second.carry_in = true;
  const DeviceCase memory(device(), c);
  const std::size_t rows = 2 * 90;
  const DeviceMemory state = device().allocate(rows * (64 + 2) * sizeof(float));
  auto* const acc = static_cast<float*>(state.data());
  const StatePointers between = {acc, acc + rows * 64, acc + rows * 65};
  Operands operands = memory.operands();
  operands.state_out = between;
  operands.o = nullptr;
  device().plan(first).run(nullptr, operands);
  operands = memory.operands();
  operands.state_in = between;
  operands.k = static_cast<const std::uint16_t*>(operands.k) + 200 * operands.k_strides.row;
  operands.v = static_cast<const std::uint16_t*>(operands.v) + 200 * operands.v_strides.row;
  device().plan(second).run(nullptr, operands);
  check(c, memory.answer());
}

}  // namespace
