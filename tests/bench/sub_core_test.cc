// Short lists of instructions with known times in the cycle model.

#include "sub_core.h"

#include <doctest/doctest.h>

#include <stdexcept>

namespace annulus::bench {
namespace {

using List = std::vector<Sass>;

Sass instruction(SassKind kind, int stall = 1) {
  Sass made;
  made.kind = kind;
  made.stall = stall;
  return made;
}

Sass waiting_for(unsigned scoreboards, Sass one) {
  one.waits_for = scoreboards;
  return one;
}

Sass setting(int scoreboard, Sass one) {
  one.write_scoreboard = scoreboard;
  return one;
}

Sass product(int columns, bool rows_in_registers, bool ends_group) {
  Sass made = instruction(SassKind::kGroupProduct);
  made.columns = columns;
  made.rows_in_registers = rows_in_registers;
  made.ends_group = ends_group;
  return made;
}

Sass wait_of_products(int pending) {
  Sass made = instruction(SassKind::kGroupWait);
  made.pending = pending;
  return made;
}

List operator*(int count, const Sass& one) { return List(static_cast<std::size_t>(count), one); }
List operator+(List list, const List& more) {
  list.insert(list.end(), more.begin(), more.end());
  return list;
}

CoreAssumptions assumed(int arch = 90) {
  CoreAssumptions made = core_assumptions(jit::Arch{arch});
  made.jitter = 0;
  return made;
}

CoreReport model(List step, int warps = 1, const CoreAssumptions& assumptions = assumed()) {
  return model_core({.step = std::move(step), .warps = warps}, assumptions);
}

double waited(const CoreReport& report, Wait wait) {
  return report.waits[static_cast<std::size_t>(wait)];
}

TEST_CASE("independent instructions issue as fast as their pipe takes them") {
  CHECK(model(100 * instruction(SassKind::kFloat)).step_cycles == doctest::Approx(100));
  CHECK(model(100 * instruction(SassKind::kFloat), 1, assumed(80)).step_cycles ==
        doctest::Approx(200));
  CHECK(model(100 * instruction(SassKind::kInteger)).step_cycles == doctest::Approx(200));
  CHECK(model(100 * instruction(SassKind::kLogic)).step_cycles == doctest::Approx(200));
  CHECK(model(100 * instruction(SassKind::kSpecial)).step_cycles == doctest::Approx(800));
  CHECK(model(100 * instruction(SassKind::kProduct)).step_cycles == doctest::Approx(600));
  CHECK(model(100 * instruction(SassKind::kProduct), 1, assumed(80)).step_cycles ==
        doctest::Approx(800));
  CHECK(model(100 * instruction(SassKind::kShuffle)).step_cycles == doctest::Approx(400));
}

TEST_CASE("pipes work beside one another") {
  const List pair = {instruction(SassKind::kFloat), instruction(SassKind::kLogic)};
  List both;
  for (int i = 0; i < 50; ++i) both = both + pair;
  CHECK(model(both).step_cycles == doctest::Approx(100));
  const CoreReport special =
      model(100 * instruction(SassKind::kLogic) + 10 * instruction(SassKind::kSpecial));
  CHECK(special.step_cycles == doctest::Approx(200 + 80).epsilon(0.1));
  CHECK(special.use(Pipe::kLogic) == doctest::Approx(200 / special.step_cycles));
}

TEST_CASE("a scoreboard holds its readers until the result is there") {
  const CoreReport chain = model(
      {setting(0, instruction(SassKind::kSpecial)), waiting_for(1, instruction(SassKind::kFloat))});
  CHECK(chain.step_cycles == doctest::Approx(assumed().special_latency + 1));
  CHECK(waited(chain, Wait::kIssues) == doctest::Approx(2));
  CHECK(waited(chain, Wait::kSpecial) == doctest::Approx(assumed().special_latency - 1));
  const CoreReport shuffle = model(
      {setting(2, instruction(SassKind::kShuffle)), waiting_for(4, instruction(SassKind::kLogic))});
  CHECK(shuffle.step_cycles == doctest::Approx(assumed().shuffle_latency + 1));
  CHECK(waited(shuffle, Wait::kShuffle) == doctest::Approx(assumed().shuffle_latency - 1));
}

TEST_CASE("warps fill one another's stalls until every cycle issues") {
  const List list = 10 * instruction(SassKind::kFloat, 4);
  for (const int warps : {1, 2, 4}) {
    CHECK(model(list, warps).step_cycles == doctest::Approx(40).epsilon(0.02));
  }
  const CoreReport eight = model(list, 8);
  CHECK(eight.step_cycles == doctest::Approx(80).epsilon(0.02));
  CHECK(eight.use(Pipe::kIssue) == doctest::Approx(1).epsilon(0.02));
  CHECK(waited(eight, Wait::kOtherWarp) > 30);
}

TEST_CASE("a branch that is taken costs more than its stall count") {
  Sass branch = instruction(SassKind::kBranch, 5);
  CHECK(model({instruction(SassKind::kFloat), branch}).step_cycles == doctest::Approx(6));
  branch.taken = true;
  const CoreReport report = model({instruction(SassKind::kFloat), branch});
  CHECK(report.step_cycles == doctest::Approx(assumed().branch_latency + 1));
  CHECK(waited(report, Wait::kBranch) == doctest::Approx(assumed().branch_latency - 1));
}

TEST_CASE("what waits add up to is the step") {
  const CoreReport report =
      model({setting(0, instruction(SassKind::kSpecial, 3)),
             waiting_for(1, instruction(SassKind::kLogic, 5)), instruction(SassKind::kShuffle, 2)},
            3);
  double sum = 0;
  for (const double cycles : report.waits) sum += cycles;
  CHECK(sum == doctest::Approx(report.step_cycles).epsilon(0.02));
}

TEST_CASE("consumers take turns") {
  const List list = {instruction(SassKind::kBarrier), instruction(SassKind::kFloat, 50),
                     instruction(SassKind::kBarrierArrive), instruction(SassKind::kFloat)};
  const double half = assumed().barrier_latency + 50;
  CHECK(model(list, 2).step_cycles == doctest::Approx(2 * half).epsilon(0.02));
  CHECK(model(list, 3).step_cycles == doctest::Approx(3 * half).epsilon(0.02));
  CHECK(waited(model(list, 2), Wait::kTurn) > 50);
}

TEST_CASE("a barrier of the CTA waits for all its warps") {
  Sass meet = instruction(SassKind::kBarrier);
  meet.barrier = 0;
  const List list = {instruction(SassKind::kFloat, 10), meet};
  CHECK(model(list, 2).step_cycles ==
        doctest::Approx(10 + assumed().barrier_latency + 1).epsilon(0.02));
}

TEST_CASE("products of a warpgroup take half a cycle for each column and run beside the warp") {
  const List group = 7 * product(128, false, false) + 1 * product(128, false, true);
  const List alone = group + 1 * wait_of_products(0);
  for (const int queue : {2, 4, 16}) {
    CoreAssumptions assumptions = assumed();
    assumptions.product_queue = queue;
    CHECK(model(alone, 1, assumptions).step_cycles ==
          doctest::Approx(8 * 64 + assumptions.product_latency + 1));
    CHECK(model(alone, 2, assumptions).use(Pipe::kTensor) == doctest::Approx(1).epsilon(0.01));
    // A warp can compute this under its products, as long as its queue is not empty.
    const List beside = group + 1 * wait_of_products(1) + 50 * instruction(SassKind::kLogic);
    CHECK(model(beside, 1, assumptions).use(Pipe::kTensor) == doctest::Approx(1).epsilon(0.01));
  }
}

TEST_CASE("operands in shared memory slow products, and copies take their part of it") {
  // 64 rows and 64 columns of 32 bytes in 32 cycles are the maximum of shared memory.
  const List list = 8 * product(64, false, true) + 1 * wait_of_products(4);
  const CoreReport plain = model(list, 2);
  CHECK(plain.step_cycles == doctest::Approx(2 * 8 * 32).epsilon(0.01));
  CHECK(plain.use(Pipe::kShared) == doctest::Approx(1).epsilon(0.01));
  const CoreReport copied =
      model_core({.step = list, .warps = 2, .copied_bytes = 128 * 128}, assumed());
  CHECK(copied.step_cycles == doctest::Approx(2 * 8 * 32 + 128).epsilon(0.03));
  CHECK(copied.use(Pipe::kShared) == doctest::Approx(1).epsilon(0.03));
  // With A in registers, half of it is used.
  CHECK(model(8 * product(64, true, true) + 1 * wait_of_products(4), 2).use(Pipe::kShared) ==
        doctest::Approx(0.5).epsilon(0.01));
}

TEST_CASE("copies that come late are waited for") {
  const List list = {setting(0, instruction(SassKind::kPhaseWait)),
                     waiting_for(1, instruction(SassKind::kFloat, 10)),
                     instruction(SassKind::kPhaseArrive)};
  const CoreReport there = model(list);
  const CoreReport late = model_core({.step = list, .stages = 2, .copy_latency = 1000}, assumed());
  CHECK(there.step_cycles < 50);
  CHECK(late.step_cycles == doctest::Approx(500).epsilon(0.05));  // two buffers are being filled
}

TEST_CASE("warps that wait for one another for ever are an error") {
  CHECK_THROWS_AS(model({instruction(SassKind::kBarrier), instruction(SassKind::kFloat)}, 2),
                  std::runtime_error);
}

TEST_CASE("a trace names every instruction of a step and what it waited for") {
  std::vector<TraceLine> trace;
  model_core({.step = {setting(0, instruction(SassKind::kSpecial)),
                       waiting_for(1, instruction(SassKind::kFloat))}},
             assumed(), &trace);
  REQUIRE(trace.size() == 2);
  CHECK(trace[1].cycle - trace[0].cycle == assumed().special_latency);
  CHECK(trace[1].waited[static_cast<std::size_t>(Wait::kSpecial)] == assumed().special_latency - 1);
}

}  // namespace
}  // namespace annulus::bench
