// Kernels that NVRTC rejects: the kernel that a plan uses instead, and the message.

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "annulus/types.h"
#include "planner/broken_planner.h"
#include "planner/planner.h"
#include "planner/tuned_entry.h"

namespace annulus::planner {
namespace {

using test::open_planner;

const Problem& problem() {
  static const Problem of = test::planned_problem("causal", 300, 64);
  return of;
}

// The configuration that the heuristic chooses.
std::string chosen(const Planner& planner) {
  return attention::to_string(attention::choose_config(problem(), planner.limits).config);
}

TEST_CASE("where the heuristic's kernel does not compile its next choice is taken, and said once") {
  const auto whole = open_planner("false");
  if (!whole) return;
  const Prepared first = whole->planner.prepare({problem(), {}});
  const auto device = open_planner(test::shape_is(first.info.tile_rows, first.info.tile_columns));
  const Prepared next = device->planner.prepare({problem(), {}});
  CHECK(first.info.config == chosen(device->planner));
  CHECK(next.info.config != first.info.config);
  CHECK_FALSE(next.info.general);
  CHECK(device->planner.context->tally().total(base::Count::recovered_plans) >= 1);
  const std::string said = "the kernel " + first.info.config + " does not work here";
  const auto mentions = [&](const std::vector<std::string>& lines) {
    return std::ranges::count_if(
        lines, [&](const std::string& line) { return line.find(said) != std::string::npos; });
  };
  CHECK(mentions(next.info.decisions) == 1);
  CHECK(mentions(device->log) == 1);
  device->planner.prepare({problem(), {}});
  CHECK(mentions(device->log) == 1);

  PlanOptions asked;
  asked.config = first.info.config;
  CHECK_THROWS_AS(device->planner.prepare({problem(), asked}), Error);
  device->planner.own_templates = true;
  CHECK_THROWS_AS(device->planner.prepare({problem(), {}}), Error);
}

TEST_CASE(
    "where no other kernel compiles a general one is taken, and not for a plan that has one") {
  const auto device = open_planner("!tile::General<Shape>::kIs");
  if (!device) return;
  const Prepared general = device->planner.prepare({problem(), {}});
  CHECK(general.info.general);
  CHECK_THROWS_AS(device->planner.prepare({problem(), {}, nullptr, false}), Error);

  PlanOptions options;
  options.wait = false;
  const PreparedLate late = device->planner.prepare_late({problem(), options});
  REQUIRE(late.late != nullptr);
  CHECK(late.late->wait(-1));
  CHECK(late.late->state() == PlanState::kGeneral);
  CHECK(late.late->problem().find("broken for the test") != std::string::npos);
  CHECK(late.late->own() == nullptr);
}

TEST_CASE("where not even a general kernel compiles the error is the heuristic's") {
  const auto device = open_planner("true");
  if (!device) return;
  try {
    device->planner.prepare({problem(), {}});
    FAIL_CHECK("there is no kernel to plan with");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kCompile);
    CHECK(std::string(error.what()).find("broken for the test") != std::string::npos);
  }
  PlanOptions options;
  options.wait = false;
  CHECK_THROWS_AS(device->planner.prepare_late({problem(), options}), Error);
}

}  // namespace
}  // namespace annulus::planner
