// Plans that use a lower family because kernels are withheld, run on a device.

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "api/impl.h"
#include "attention/kernels/family.h"
#include "attention/on_device.h"
#include "device/launches.h"

namespace {

using namespace annulus;

// Runs the prepared plan of a case, and compares the answer with the oracle.
void check_prepared(const planner::Prepared& prepared, const test::Case& c) {
  test::DeviceCase on_device(test::device(), c);
  const DeviceMemory workspace = test::device().allocate(prepared.workspace_bytes());
  device::StreamSink stream(nullptr);
  prepared.put(stream, on_device.operands(), workspace.data(), nullptr);
  test::check(c, on_device.answer());
}

TEST_CASE("what is chosen in the place of withheld kernels is right, until none is left") {
  planner::Planner planner = api::planner_of(api::inside(test::device()));
  planner.tuned = std::make_shared<tuned::TunedStore>(tuned::StoreOptions{});
  const std::string arch = test::device().info().architecture;
  const test::Case c = test::make_case(test::problem_of(300, 300, 64, 64, causal()), 1);
  std::vector<attention::Withheld> table;
  std::vector<std::string> taken;
  std::string refusal;
  while (refusal.empty() && taken.size() <= attention::families().size()) {
    planner.limits.withheld = table;
    try {
      const planner::Prepared prepared = planner.prepare({c.problem, {}});
      const attention::KernelConfig config = prepared.forward.branches().front().plan().config;
      check_prepared(prepared, c);
      check_prepared(planner.prepare_general({c.problem, {}}), c);
      taken.push_back(prepared.info.config);
      table.push_back({config.family->name, 64, arch, "rows are wrong"});
    } catch (const Error& error) {
      refusal = error.what();
      CHECK_MESSAGE(error.code() == ErrorCode::kUnsupported, refusal);
    }
  }
  REQUIRE(taken.size() == (arch == "sm_90a" ? 2 : 1));
  CHECK_MESSAGE(refusal.find("no kernel is left for bf16") != std::string::npos, refusal);

  // A withheld kernel can still be examined by naming it.
  PlanOptions options;
  options.config = taken.front();
  const planner::Prepared named = planner.prepare({c.problem, options});
  check_prepared(named, c);
  CHECK(named.info.config == options.config);
  int told = 0;
  for (const std::string& line : named.info.decisions) {
    told +=
        line.find("this configuration runs because the caller requested it") != std::string::npos;
  }
  CHECK(told == 1);
}

}  // namespace
