// Works that persistent CTAs draw from a counter. In every form of the kernels, with more CTAs than
// works and with fewer, the answer must have the same bits as with works that are counted off.

#include <doctest/doctest.h>

#include <cstring>
#include <string>

#include "api/impl.h"
#include "attention/plan/plan.h"
#include "attention/run/forward.h"
#include "on_device.h"
#include "support/dealt_case.h"
#include "support/options.h"

namespace {

using namespace annulus;
using attention::Dealt;
using test::DealtCase;

struct Form {
  const char* config;
  std::int64_t dim;
  int heads_per_kv;
};
// Two and three consumers, packed heads, clusters over heads and over rows, and transposed V.
constexpr Form kForms[] = {
    {"wgmma m192 n128 w12 s2", 64, 1},      {"wgmma m128 n128 w8 s2 c2", 128, 2},
    {"wgmma m128 n64 w8 s2 c2", 256, 1},    {"wgmma m64 n64 w8 s2 b2 h2 c2", 64, 4},
    {"wgmma8 m64 n64 w8 s2 b2 h2", 128, 2}, {"wgmma8 m128 n128 w8 s2 c2", 64, 2},
};

// The forms are combined in turn with the numbers of multiprocessors, and --seed shifts the turns.
// Three successive seeds combine every form with every number.
TEST_CASE("drawn works give the bits of works that are counted off") {
  if (test::device().info().architecture != "sm_90a") return;
  constexpr int kMultiprocessors[] = {2, 5, 1000};
  std::uint64_t seed = test::seed_of(900);
  for (const Form& form : kForms) {
    CAPTURE(form.config);
    const int multiprocessors = kMultiprocessors[seed % 3];
    CAPTURE(multiprocessors);
    const bool by_rows =
        form.heads_per_kv == 1 && std::string(form.config).find(" c2") != std::string::npos;
    Problem problem =
        test::problem_of(3 * 192 - 7, 500, form.dim, form.dim, by_rows ? dense() : causal());
    problem.batch = 2;
    problem.heads = 4;
    problem.kv_heads = 4 / form.heads_per_kv;
    // Some rows see nothing at all.
    if (!by_rows && multiprocessors == 5) problem.q0 = -200;
    if (std::string(form.config).starts_with("wgmma8")) problem.dtype = Dtype::kFloat8E4M3;
    const test::Case host = test::make_case(problem, seed++);
    DealtCase drawn(test::device(), host, form.config, multiprocessors, Dealt::kDrawn);
    DealtCase counted(test::device(), host, form.config, multiprocessors, Dealt::kCountedOff);
    CHECK(drawn.plan().workspace_bytes == 16);
    CHECK(counted.plan().workspace_bytes == 0);
    const test::DeviceAnswer answer = drawn.run();
    test::check(host, answer);
    CHECK(answer == counted.run());
    // The counter keeps its value from the last launch, and the next launch sets it to 0 again.
    CHECK(drawn.run() == answer);
    drawn.on_device().check_replay([&](void* stream) { drawn.queue(stream); }, answer);
  }
}

// The keys and values of a head take more of L2 than a set of heads may, but each row sees only a
// few.
TEST_CASE("a head start changes no bit") {
  if (test::device().info().architecture != "sm_90a") return;
  Problem problem =
      test::problem_of(5 * 128 - 7, 135'000, 64, 64, causal() & (window(400, 0) | sink(1000)));
  problem.pattern = problem.pattern & ~queries(134'600, 134'800);
  problem.heads = problem.kv_heads = 3;
  const test::Case host = test::make_case(problem, test::seed_of(940));
  constexpr char kConfig[] = "wgmma m128 n128 w8 s2";
  DealtCase counted(test::device(), host, kConfig, 2, Dealt::kCountedOff);
  const test::DeviceAnswer answer = counted.run();
  test::check(host, answer);
  using attention::HeadStart;
  for (const HeadStart& ahead : {HeadStart{}, HeadStart{1, 1}, HeadStart{2, 1}, HeadStart{2, 3},
                                 HeadStart{3, 2}, HeadStart{3, 5}, HeadStart{9, 99}}) {
    CAPTURE(ahead.sets);
    CAPTURE(ahead.rows);
    DealtCase drawn(test::device(), host, kConfig, 2, Dealt::kDrawn, ahead);
    CHECK(drawn.run() == answer);
  }
}

TEST_CASE("parts of split rows may be drawn, and the counter lies behind their states") {
  if (test::device().info().architecture != "sm_90a") return;
  Problem problem = test::problem_of(200, 2000, 128, 128, causal());
  problem.heads = problem.kv_heads = 3;
  const test::Case host = test::make_case(problem, test::seed_of(950));
  const Device::Impl& impl = api::inside(test::device());
  attention::DeviceLimits limits = api::limits_of(impl);
  limits.multiprocessors = 3;
  const auto choice = attention::forced_config(problem, limits, "wgmma m128 n128 w8 s2");
  attention::LaunchPlan plan = attention::make_plan(
      problem, choice, limits, {.kv_splits = 4, .dealt = attention::Dealt::kDrawn});
  REQUIRE(!plan.split.empty());
  CHECK(plan.drawn_offset + 16 == plan.workspace_bytes);
  CHECK(plan.drawn_offset > 0);
  const attention::Forward forward(impl.context, *impl.kernels, std::move(plan));
  const device::Buffer workspace(impl.context,
                                 static_cast<std::size_t>(forward.plan().workspace_bytes));
  test::DeviceCase on_device(test::device(), host);
  forward.run(nullptr, on_device.operands(), reinterpret_cast<void*>(workspace.address()));
  impl.context->synchronize();
  test::check(host, on_device.answer());
}

}  // namespace
