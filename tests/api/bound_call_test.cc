// Bound calls must give the same bits as Plan::run for every kind of plan, and refuse the same
// calls.

#include <doctest/doctest.h>

#include <cstring>

#include "annulus/device.h"
#include "annulus/types.h"
#include "base/random.h"
#include "support/threads.h"

namespace annulus {
namespace {

constexpr std::int64_t kSeq = 200;

Problem small_problem(const char* pattern) {
  Problem problem;
  problem.heads = 4;
  problem.kv_heads = 2;
  problem.seq_q = problem.seq_k = kSeq;
  problem.dim_qk = problem.dim_v = 64;
  problem.pattern = Pattern::parse(pattern);
  problem.want_lse = true;
  return problem;
}

// The operands of one call, filled, and their outputs.
class Memory {
 public:
  Memory(const Device& device, const Problem& problem, std::uint64_t seed)
      : device_(device), bytes_(static_cast<std::size_t>(problem.seq_q * problem.heads * 64 * 2)) {
    for (DeviceMemory* each : {&q_, &k_, &v_, &o_}) *each = device.allocate(bytes_);
    lse_ = device.allocate(static_cast<std::size_t>(problem.seq_q * problem.heads) * 4);
    fill(seed);
    operands.q = q_.data();
    operands.k = k_.data();
    operands.v = v_.data();
    operands.o = o_.data();
    operands.lse = static_cast<float*>(lse_.data());
    operands.q_strides = operands.o_strides = Strides::bshd(problem.seq_q, problem.heads, 64);
    operands.k_strides = operands.v_strides = Strides::bshd(problem.seq_k, problem.kv_heads, 64);
  }

  void fill(std::uint64_t seed) {
    base::Random random(seed);
    std::vector<std::uint16_t> bits(bytes_ / 2);
    for (const DeviceMemory* each : {&q_, &k_, &v_}) {
      // bf16 values from about -2 to 2
      for (std::uint16_t& value : bits) {
        value = static_cast<std::uint16_t>(0x3f00 + random.below(0x100) + 0x8000 * random.below(2));
      }
      device_.copy_to_device(each->data(), bits.data(), bytes_);
    }
  }

  // Returns O followed by LSE, and overwrites both with other bits.
  std::vector<std::byte> take() {
    device_.synchronize();
    std::vector<std::byte> all(bytes_ + lse_.bytes());
    device_.copy_to_host(all.data(), o_.data(), bytes_);
    device_.copy_to_host(all.data() + bytes_, lse_.data(), lse_.bytes());
    const std::vector<std::byte> mark(bytes_, std::byte{0x7f});
    device_.copy_to_device(o_.data(), mark.data(), bytes_);
    device_.copy_to_device(lse_.data(), mark.data(), lse_.bytes());
    return all;
  }

  Operands operands;

 private:
  Device device_;
  std::size_t bytes_;
  DeviceMemory q_, k_, v_, o_, lse_;
};

// Uses one plan with two sets of operands. Each is bound once and run twice, with different
// contents.
void check_bound(const Device& device, const Plan& plan) {
  Memory first(device, plan.problem(), 1);
  Memory second(device, plan.problem(), 2);
  const DeviceMemory workspace = device.allocate(plan.workspace_bytes());
  const BoundCall calls[] = {plan.bind(first.operands, workspace.data()),
                             plan.bind(second.operands, workspace.data())};
  for (const std::uint64_t seed : {3, 4}) {
    first.fill(seed);
    for (int i : {0, 1}) {
      Memory& memory = i == 0 ? first : second;
      plan.run(nullptr, memory.operands, workspace.data());
      const std::vector<std::byte> expected = memory.take();
      calls[i].run(nullptr);
      const std::vector<std::byte> bound = memory.take();
      CHECK(bound == expected);
      CHECK(memory.take() != expected);  // the overwritten memory differs from the answer
    }
  }
}

TEST_CASE("a bound call has the bits of a run, for every kind of plan") {
  for (const char* name : {"sim:sm_80", "sim:sm_90a"}) {
    CAPTURE(name);
    const Device device = Device::open(name);
    check_bound(device, device.plan(small_problem("causal & (window(63,0) | sink(4))")));
    check_bound(device, device.plan(small_problem("sum(causal, window(31,0))")));
    PlanOptions split;
    split.kv_splits = 3;
    const Plan parts = device.plan(small_problem("causal"), split);
    CHECK(parts.info().launches == 2);
    check_bound(device, parts);
    Selection selection;
    selection.max_blocks = 2;
    check_bound(device, device.plan(small_problem("causal"), selection));
  }
}

TEST_CASE("a bound call outlives its plan and its device") {
  std::optional<Device> device = Device::open("sim:sm_90a");
  const Problem problem = small_problem("causal");
  std::optional<Plan> plan = device->plan(problem);
  Memory memory(*device, problem, 5);
  const BoundCall bound = plan->bind(memory.operands);
  const BoundCall copy = bound;
  plan->run(nullptr, memory.operands);
  const std::vector<std::byte> expected = memory.take();
  plan.reset();
  device.reset();
  copy.run(nullptr);
  CHECK(memory.take() == expected);
}

TEST_CASE("threads run bound calls side by side") {
  const Device device = Device::open("sim:sm_90a");
  const Problem problem = small_problem("causal");
  const Plan plan = device.plan(problem);
  std::vector<Memory> memories;
  for (std::uint64_t i = 0; i < 3; ++i) memories.emplace_back(device, problem, i);
  std::vector<std::vector<std::byte>> expected;
  std::vector<BoundCall> calls;
  for (Memory& memory : memories) {
    plan.run(nullptr, memory.operands);
    expected.push_back(memory.take());
    calls.push_back(plan.bind(memory.operands));
  }
  test::on_threads(calls.size(), [&](std::size_t i) {
    for (int run = 0; run < 3; ++run) calls[i].run(nullptr);
  });
  for (std::size_t i = 0; i < memories.size(); ++i) CHECK(memories[i].take() == expected[i]);
}

TEST_CASE("binding refuses what a run refuses, and launches nothing") {
  const Device device = Device::open("sim:sm_90a");
  const Problem problem = small_problem("causal");
  const Plan plan = device.plan(problem);
  Memory memory(device, problem, 6);
  const auto launches = [&] { return device.counters()[0].second; };
  const auto before = launches();
  Operands wrong = memory.operands;
  wrong.o = nullptr;
  CHECK_THROWS_WITH_AS(plan.bind(wrong), doctest::Contains("O is null"), Error);
  wrong = memory.operands;
  wrong.k_strides.head = 0;
  CHECK_THROWS_WITH_AS(plan.bind(wrong), doctest::Contains("head stride of K is 0"), Error);
  CHECK_THROWS_WITH_AS(plan.bind(memory.operands, nullptr, SelectionBuffers()),
                       doctest::Contains("no selection"), Error);
  const Plan sum = device.plan(small_problem("sum(causal, dense)"));
  CHECK_THROWS_WITH_AS(sum.bind(memory.operands), doctest::Contains("bytes of workspace"), Error);
  static_cast<void>(plan.bind(memory.operands));
  CHECK(launches() == before);
}

TEST_CASE("a plan that launches nothing is bound to nothing") {
  const Device device = Device::open("sim:sm_90a");
  Problem problem = small_problem("causal");
  problem.batch = 0;
  device.plan(problem).bind(Operands()).run(nullptr);
}

}  // namespace
}  // namespace annulus
