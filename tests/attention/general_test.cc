// General kernels against specialised ones of the same configuration, bit for bit.

#include <doctest/doctest.h>

#include <string>

#include "annulus/error.h"
#include "attention/on_device.h"
#include "support/options.h"

namespace {

using namespace annulus;
using test::Case;
using test::check;
using test::device;
using test::DeviceAnswer;
using test::problem_of;

PlanOptions general() {
  PlanOptions options;
  options.wait = false;
  options.swap = Swap::kNever;
  return options;
}

// The answers of the general kernel and of the specialised kernel of its configuration.
void check_same(const Case& c, const PlanOptions& asked = general()) {
  CAPTURE(c.text);
  const Plan plan = device().plan(c.problem, asked);
  PlanOptions options = asked;
  options.wait = true;
  options.config = plan.info().config;
  const DeviceAnswer answer = test::run_case(device(), c, asked);
  check(c, answer);
  CHECK(answer == test::run_case(device(), c, options));
}

TEST_CASE("a general kernel gives the bits of a specialised one of its tiles") {
  for (std::uint64_t index = 0; index < 60; ++index) {
    Case c = test::random_case(test::options().seed + 77, index);
    if (c.problem.score.score_mod) continue;
    check_same(c);
  }
}

}  // namespace
