// Plans that receive tuned results found after the plans were made.

#include "planner/late/followers.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "annulus/types.h"
#include "attention/plan/plan.h"
#include "planner/broken_planner.h"
#include "planner/tuned_entry.h"

namespace annulus::planner {
namespace {

using test::keep_tuned;
using test::open_planner;
using test::OpenedPlanner;
using test::planned_problem;

// The heuristic does not choose these for the problems below.
constexpr const char* kBetter = "mma m64 n32 w4 s2";
constexpr const char* kOther = "mma m64 n64 w4 s1";

std::string heuristic(const OpenedPlanner& device, const Problem& problem) {
  return attention::to_string(attention::choose_config(problem, device.planner.limits).config);
}

// A plan that was made before any tuning, and that follows later results.
struct Following {
  explicit Following(Problem of, PlanState state = PlanState::kReady)
      : problem(std::move(of)), plan(std::make_shared<LateKernel>(Swap::kWhenReady, state)) {
    options.follow_tuning = true;
    options.swap = Swap::kWhenReady;
  }
  void add_to(Followers& followers, const OpenedPlanner& device, const std::string& config) {
    followers.add(device.planner, {problem, options}, config, std::size_t{1} << 20, plan);
  }
  void add_to(Followers& followers, const OpenedPlanner& device) {
    add_to(followers, device, heuristic(device, problem));
  }
  Problem problem;
  PlanOptions options;
  std::shared_ptr<LateKernel> plan;
};

// The outcome of updating all followers.
struct Updated {
  bool again = false;
  std::vector<std::string> errors;
};
Updated update(
    Followers& followers, const OpenedPlanner& device,
    const std::function<bool()>& stopped = [] { return false; }) {
  Updated updated;
  updated.again = followers.update(device.planner, stopped, [&](const std::exception& error) {
    updated.errors.emplace_back(error.what());
  });
  return updated;
}

TEST_CASE("a plan that cannot be made ready drops none of those before and after it") {
  const Problem unlucky = planned_problem("causal", 300, 128);
  const auto whole = open_planner("false");
  if (!whole) return;
  const attention::KernelConfig config =
      attention::choose_config(unlucky, whole->planner.limits).config;
  const auto device = open_planner(test::shape_is(config.tile_rows, config.tile_columns));
  device->planner.own_templates = true;  // no other kernel replaces one that does not compile
  Followers followers;
  Following first(planned_problem("causal", 300)), broken(unlucky),
      last(planned_problem("causal", 400));
  broken.options.wait = false;
  first.add_to(followers, *device);
  broken.add_to(followers, *device, kOther);  // the heuristic chooses another configuration
  last.add_to(followers, *device);
  keep_tuned(*device->planner.tuned, first.problem, kBetter);
  keep_tuned(*device->planner.tuned, last.problem, kBetter);
  const Updated updated = update(followers, *device);
  REQUIRE(updated.errors.size() == 1);
  CHECK(updated.errors[0].find("broken for the test") != std::string::npos);
  CHECK_FALSE(updated.again);
  CHECK(first.plan->config() == kBetter);
  CHECK(broken.plan->config().empty());
  CHECK(last.plan->config() == kBetter);
  CHECK(last.plan->own() != nullptr);
  // A result that failed is not tried again, but another result is.
  CHECK(update(followers, *device).errors.empty());
  keep_tuned(*device->planner.tuned, broken.problem, kBetter);
  CHECK(update(followers, *device).errors.empty());
  CHECK(broken.plan->config() == kBetter);
}

TEST_CASE("a stop ends an update before the next plan") {
  const auto device = open_planner("false");
  if (!device) return;
  Followers followers;
  Following first(planned_problem("causal", 300)), second(planned_problem("causal", 400));
  first.add_to(followers, *device);
  second.add_to(followers, *device);
  keep_tuned(*device->planner.tuned, first.problem, kBetter);
  keep_tuned(*device->planner.tuned, second.problem, kBetter);
  CHECK_FALSE(update(followers, *device, [] { return true; }).again);
  CHECK(first.plan->config().empty());
  update(followers, *device, [&] { return !first.plan->config().empty(); });
  CHECK(first.plan->config() == kBetter);
  CHECK(second.plan->config().empty());
  update(followers, *device);
  CHECK(second.plan->config() == kBetter);
}

TEST_CASE("a plan gets what was stored while it was made") {
  const auto device = open_planner("false");
  if (!device) return;
  Followers followers;
  Following waits(planned_problem("causal", 300)), later(planned_problem("causal", 400));
  for (Following* each : {&waits, &later}) {
    keep_tuned(*device->planner.tuned, each->problem, kBetter);
  }
  waits.add_to(followers, *device);
  CHECK(waits.plan->config() == kBetter);
  // A plan that does not wait for kernels does not wait for this one either.
  later.options.wait = false;
  later.add_to(followers, *device);
  CHECK(later.plan->config().empty());
  update(followers, *device);
  CHECK(later.plan->config() == kBetter);
}

TEST_CASE("a plan follows although what was stored meanwhile does not work") {
  const Problem problem = planned_problem("causal", 300, 128);
  const auto whole = open_planner("false");
  if (!whole) return;
  const attention::KernelConfig config =
      attention::choose_config(problem, whole->planner.limits).config;
  const auto device = open_planner(test::shape_is(config.tile_rows, config.tile_columns));
  device->planner.own_templates = true;
  Followers followers;
  Following plan(problem);
  plan.add_to(followers, *device, kOther);
  CHECK(plan.plan->config().empty());
  keep_tuned(*device->planner.tuned, problem, kBetter);
  CHECK(update(followers, *device).errors.empty());
  CHECK(plan.plan->config() == kBetter);
}

TEST_CASE("a plan whose first kernel is not compiled yet is asked about again") {
  const auto device = open_planner("false");
  if (!device) return;
  Followers followers;
  Following first(planned_problem("causal", 300), PlanState::kCompiling),
      second(planned_problem("causal", 400));
  first.add_to(followers, *device);
  second.add_to(followers, *device);
  keep_tuned(*device->planner.tuned, first.problem, kBetter);
  keep_tuned(*device->planner.tuned, second.problem, kBetter);
  CHECK(update(followers, *device).again);
  CHECK(first.plan->config().empty());
  CHECK(second.plan->config() == kBetter);
  first.plan->fail("for the test");
  CHECK_FALSE(update(followers, *device).again);
  CHECK(first.plan->config() == kBetter);
}

}  // namespace
}  // namespace annulus::planner
