// Kernels on the device that --device names, compared with the oracle: every feature, and random
// problems.

#include <doctest/doctest.h>

#include <cstdio>
#include <memory>
#include <vector>

#include "attention/on_device.h"
#include "support/options.h"
#include "support/threads.h"

namespace {

using namespace annulus;
using test::Case;
using test::check;
using test::device;
using test::DeviceAnswer;
using test::DeviceCase;
using test::problem_of;

TEST_CASE("random problems match the oracle") {
  const int count = test::options().problems > 0 ? test::options().problems : 24;
  test::CaseLimits limits;
  if (test::options().length > 0) limits.max_length = test::options().length;
  for (int index = 0; index < count; ++index) {
    const Case c =
        test::random_case(test::options().seed, static_cast<std::uint64_t>(index), limits);
    CAPTURE(index);
    CAPTURE(c.text);
    REQUIRE_NOTHROW(check(c, test::run_case(device(), c)));
    if (count >= 200 && (index + 1) % 100 == 0) {
      std::fprintf(stderr, "%d of %d problems\n", index + 1, count);
    }
  }
}

TEST_CASE("the same call twice gives the same bits, and so do threads that share the plan") {
  Problem problem = problem_of(200, 300, 64, 64, causal() | sink(20));
  problem.heads = 3;
  const Case c = test::make_case(problem, 4);
  const Plan plan = device().plan(problem);
  DeviceCase memory(device(), c);
  plan.run(nullptr, memory.operands());
  const DeviceAnswer first = memory.answer();
  check(c, first);
  memory.reset();
  plan.run(nullptr, memory.operands());
  CHECK(memory.answer() == first);

  std::vector<std::unique_ptr<DeviceCase>> cases;
  for (int i = 0; i < 4; ++i) cases.push_back(std::make_unique<DeviceCase>(device(), c));
  test::on_threads(cases.size(), [&](std::size_t i) { plan.run(nullptr, cases[i]->operands()); });
  for (auto& one : cases) CHECK(one->answer() == first);
}

TEST_CASE("the order of warps and of copies does not change a bit") {
  if (!device().info().simulated) return;
  const int orders = test::options().orders > 0 ? test::options().orders : 6;
  for (const Problem& problem : {problem_of(150, 280, 128, 128, causal()),
                                 problem_of(100, 200, 32, 32, window(64, 10) | global(5))}) {
    const Case c = test::make_case(problem, 5);
    const Plan plan = device().plan(problem);
    DeviceCase memory(device(), c);
    device().set_simulation({});
    plan.run(nullptr, memory.operands());
    const DeviceAnswer first = memory.answer();
    check(c, first);
    for (int order = 1; order <= orders; ++order) {
      SimulationOptions simulation;
      simulation.seed = test::options().seed * 1000 + static_cast<std::uint64_t>(order);
      device().set_simulation(simulation);
      memory.reset();
      plan.run(nullptr, memory.operands());
      CAPTURE(order);
      CHECK(memory.answer() == first);
    }
    SimulationOptions fast;
    fast.checked = false;
    device().set_simulation(fast);
    memory.reset();
    plan.run(nullptr, memory.operands());
    CHECK(memory.answer() == first);
    device().set_simulation({});
  }
}

// A view of the keys [begin, end) of a case, with the state between launches.
Case keys_of(const Case& whole, std::int64_t begin, std::int64_t end) {
  Case part = whole;
  part.problem.seq_k = end - begin;
  part.problem.q0 = whole.problem.q_position();
  part.problem.k0 = whole.problem.k_position() + begin;
  const auto cut = [&](test::HostTensor* tensor) {
    tensor->bits.erase(tensor->bits.begin(), tensor->bits.begin() + begin * tensor->strides.row);
    tensor->rows = end - begin;
  };
  cut(&part.k);
  cut(&part.v);
  return part;
}

TEST_CASE("keys split over launches by a carried state give the answer of one launch") {
  for (const std::int64_t cut : {0, 1, 64, 130, 299}) {
    CAPTURE(cut);
    Problem problem = problem_of(140, 300, 64, 64, causal() & ~window(40, 0));
    problem.heads = 2;
    const Case whole = test::make_case(problem, 6);
    Case first = keys_of(whole, 0, cut);
    first.problem.want_lse = false;
    first.problem.carry_out = true;
    const DeviceAnswer state = test::run_case(device(), first);
    check(first, state);
    Case second = keys_of(whole, cut, 300);
    second.problem.carry_in = true;
    second.state_in = state.state;
    const DeviceAnswer answer = test::run_case(device(), second);
    check(whole, answer);  // the oracle of all keys at once

    // Both halves, computed separately and merged on the host, give the same answer.
    Case other = keys_of(whole, cut, 300);
    other.problem.want_lse = false;
    other.problem.carry_out = true;
    const DeviceAnswer other_state = test::run_case(device(), other);
    const HostState merged = merge(state.state, other_state.state);
    Case all = whole;
    all.problem.want_lse = false;
    all.problem.carry_out = true;
    DeviceAnswer joined;
    joined.carried = true;
    joined.state = merged;
    check(all, joined);
  }
}

TEST_CASE("the state may be updated in place") {
  Problem problem = problem_of(70, 90, 32, 32, dense());
  problem.want_lse = false;
  problem.carry_in = problem.carry_out = true;
  const Case c = test::make_case(problem, 7);
  const DeviceAnswer apart = test::run_case(device(), c);
  check(c, apart);
  DeviceCase memory(device(), c);
  Operands operands = memory.operands();
  operands.state_out = operands.state_in;
  device().plan(problem).run(nullptr, operands);
  device().synchronize();
  HostState state = HostState::empty(70, 32);
  device().copy_to_host(state.acc.data(), operands.state_in.acc, state.acc.size() * 4);
  device().copy_to_host(state.m.data(), operands.state_in.m, state.m.size() * 4);
  device().copy_to_host(state.l.data(), operands.state_in.l, state.l.size() * 4);
  DeviceAnswer in_place;
  in_place.carried = true;
  in_place.state = state;
  CHECK(in_place == apart);
}

}  // namespace
