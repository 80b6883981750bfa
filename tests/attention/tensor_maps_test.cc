// Operands that tensor maps do not support, and operands beyond 32-bit offsets, for every family.

#include <doctest/doctest.h>

#include <string>

#include "annulus/types.h"
#include "attention/on_device.h"

namespace {

using namespace annulus;
using test::Case;
using test::device;
using test::DeviceAnswer;
using test::DeviceCase;
using test::problem_of;

bool has_wgmma() { return device().info().architecture == "sm_90a"; }

// Options for a kernel with tensor maps, if the device has such kernels. The heuristic would not
// choose it for such small problems.
PlanOptions with_tensor_maps() {
  PlanOptions options;
  if (has_wgmma()) options.config = "wgmma m128 n128 w8 s2";
  return options;
}

OperandStrides strides_of(const Operands& operands) {
  return {operands.q_strides, operands.k_strides, operands.v_strides, operands.o_strides};
}

std::uint64_t launches() { return device().info().simulated ? device().counters()[0].second : 0; }

void run_refused(const Plan& plan, const Operands& operands, void* workspace,
                 const std::string& what) {
  device().counters(true);
  try {
    plan.run(nullptr, operands, workspace);
    FAIL("ran with what no tensor map takes: " << what);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kUnsupported);
    CHECK_MESSAGE(std::string(error.what()).find(what) != std::string::npos, error.what());
    CHECK(std::string(error.what()).find("give the strides when planning") != std::string::npos);
  }
  CHECK(launches() == 0);
}

// Two heads of K and V that are the same memory.
Case broadcast_case(const Pattern& pattern) {
  Problem problem = problem_of(150, 300, 64, 64, pattern);
  problem.heads = problem.kv_heads = 2;
  Case c = test::make_case(problem, 77);
  c.k.strides.head = c.v.strides.head = 0;
  return c;
}

TEST_CASE("keys that are broadcast over heads: another family where it is known, else an error") {
  const Case c = broadcast_case(causal());
  DeviceCase memory(device(), c);
  if (has_wgmma()) {
    run_refused(device().plan(c.problem, with_tensor_maps()), memory.operands(), nullptr,
                "the head stride of K is 0 elements");
  }
  PlanOptions options;
  options.strides = strides_of(memory.operands());
  const Plan plan = device().plan(c.problem, options);
  CHECK(plan.info().kernel == "mma_forward");
  if (has_wgmma()) {
    CHECK(plan.info().decisions[1].find("not of the wgmma family: the head stride of K is 0") !=
          std::string::npos);
    options.config = with_tensor_maps().config;
    CHECK_THROWS_AS(device().plan(c.problem, options), Error);
  }
  memory.reset();
  plan.run(nullptr, memory.operands());
  device().synchronize();
  test::check(c, memory.answer());
}

TEST_CASE("ordinary strides that are known change nothing") {
  const Case c = test::make_case(problem_of(150, 300, 64, 64, causal()), 78);
  DeviceCase memory(device(), c);
  PlanOptions options = with_tensor_maps();
  options.strides = strides_of(memory.operands());
  // A stride that is never used may be anything.
  options.strides->k.head = 0;
  options.strides->o.batch = -1;
  CHECK_NOTHROW(device().plan(c.problem, options));
  options.config.clear();
  CHECK(device().plan(c.problem, options).info().config == device().plan(c.problem).info().config);
}

TEST_CASE("of a sum nothing is launched before the strides of the last branch are looked at") {
  Problem problem = problem_of(150, 300, 64, 64, sum({causal(), window(20, 0)}));
  problem.heads = problem.kv_heads = 2;
  const Case c = test::make_case(problem, 79);
  DeviceCase memory(device(), c);
  if (!has_wgmma()) return;
  const Plan plan = device().plan(problem, with_tensor_maps());
  Operands operands = memory.operands();
  operands.o_strides.row = -operands.o_strides.row;
  const DeviceMemory workspace = device().allocate(plan.workspace_bytes());
  run_refused(plan, operands, workspace.data(), "the row stride of O is");
}

TEST_CASE("without keys nothing of K and V is looked at") {
  for (const std::int64_t dim : {64, 128}) {
    Problem problem = problem_of(130, 0, dim, dim, dense());
    problem.batch = problem.heads = problem.kv_heads = 2;  // their strides are 0
    const Case c = test::make_case(problem, 80);
    const Plan plan = device().plan(problem, with_tensor_maps());
    DeviceCase memory(device(), c);
    Operands operands = memory.operands();
    operands.k = operands.v = nullptr;
    plan.run(nullptr, operands);
    device().synchronize();
    test::check(c, memory.answer());
  }
}

TEST_CASE("e4m3, which no other family has, is told what to do about strides") {
  if (!has_wgmma()) return;
  Problem problem = problem_of(150, 300, 64, 64, dense());
  problem.dtype = Dtype::kFloat8E4M3;
  problem.heads = problem.kv_heads = 2;
  const Case c = test::make_case(problem, 82);
  DeviceCase memory(device(), c);
  Operands operands = memory.operands();
  operands.v_strides.head = 0;
  PlanOptions options;
  options.strides = strides_of(operands);
  const auto check_text = [](const auto& call) {
    try {
      call();
      FAIL("was taken");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kUnsupported);
      const std::string text = error.what();
      CHECK_MESSAGE(text.find("the head stride of V is 0 elements") != std::string::npos, text);
      CHECK_MESSAGE(text.find("copy the tensor, or convert to bf16") != std::string::npos, text);
    }
  };
  check_text([&] { device().plan(problem, options); });
  check_text([&] { device().plan(problem).run(nullptr, operands); });
}

TEST_CASE("heads that lie more than 2^31 elements apart") {
  constexpr std::int64_t kApart = (std::int64_t{1} << 31) + 64;
  Problem problem = problem_of(140, 200, 64, 64, causal());
  problem.heads = problem.kv_heads = 2;
  const Case c = test::make_case(problem, 81, test::Order::kBhsd);
  DeviceCase memory(device(), c);
  const std::int64_t rows = problem.seq_k * problem.dim_qk;  // elements of a head
  const DeviceMemory large =
      device().allocate(static_cast<std::size_t>(kApart + 4 * rows) * sizeof(std::uint16_t));
  auto* const base = static_cast<std::uint16_t*>(large.data());
  Operands operands = memory.operands();
  const auto spread = [&](const test::HostTensor& host, std::int64_t at, const void** data,
                          Strides* strides) {
    for (std::int64_t head = 0; head < 2; ++head) {
      device().copy_to_device(base + at + head * kApart, host.bits.data() + head * rows,
                              static_cast<std::size_t>(rows) * sizeof(std::uint16_t));
    }
    *data = base + at;
    strides->head = kApart;
  };
  REQUIRE(c.k.strides.head == rows);
  spread(c.k, 0, &operands.k, &operands.k_strides);
  spread(c.v, 2 * rows, &operands.v, &operands.v_strides);
  PlanOptions options = with_tensor_maps();
  options.strides = strides_of(operands);
  device().plan(problem, options).run(nullptr, operands);
  device().synchronize();
  test::check(c, memory.answer());
}

}  // namespace
