// General kernels, compared bit by bit with specialised kernels of the same configuration.

#include <doctest/doctest.h>

#include <string>

#include "annulus/types.h"
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
  const auto problems = static_cast<std::uint64_t>(test::options().problems);
  for (std::uint64_t index = 0; index < (problems > 0 ? problems : 30); ++index) {
    const Case c = test::random_case(test::options().seed + 77, index);
    if (!c.problem.score.score_mod) check_same(c);
  }
}

// Features that random problems rarely have: rows in parts, batches that differ, branches, and a
// state that is updated in place.
TEST_CASE("a general kernel splits rows, tells batches apart and carries states on") {
  PlanOptions in_parts = general();
  in_parts.kv_splits = 3;
  Problem split = problem_of(130, 900, 64, 64, causal() & (window(500, 0) | global(20)));
  split.heads = 4;
  split.kv_heads = 2;
  split.score.sink_logit = {0.5, -1, 2};
  check_same(test::make_case(split, 1), in_parts);
  split.carry_in = split.carry_out = true;
  split.want_lse = false;
  check_same(test::make_case(split, 2), in_parts);

  Problem batches =
      problem_of(200, 200, 32, 32, annulus::batches({causal(), window(9, 4), dense()}));
  batches.batch = 5;
  batches.heads = 2;
  batches.score.alibi = {0.1, -0.2};
  check_same(test::make_case(batches, 3));
  check_same(test::make_case(batches, 4), in_parts);

  Problem sum_of = problem_of(150, 400, 128, 128, sum({causal() & window(40, 0), sink(100)}));
  sum_of.score.softcap = 20;
  check_same(test::make_case(sum_of, 5));
}

TEST_CASE("a pattern that no program holds, strides and elements without a kernel are refused") {
  Pattern deep = window(1, 1) & sink(1);
  for (int level = 0; level < 4; ++level) {
    const Pattern again = deep;
    deep = level % 2 == 0 ? deep | again : deep & again;
  }
  const auto refused = [](const Problem& problem, const PlanOptions& options, const char* why) {
    try {
      device().plan(problem, options);
      FAIL_CHECK("planned: " << why);
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kUnsupported);
      CHECK(std::string(error.what()).find(why) != std::string::npos);
    }
  };
  refused(problem_of(100, 100, 64, 64, deep), general(), "inside of one another");
  Problem scored = problem_of(100, 100, 64, 64, causal());
  scored.score = Score::parse("score_mod(score + 1)");
  refused(scored, general(), "score expression");
  if (device().info().architecture != "sm_90a") return;
  Problem float8 = problem_of(100, 100, 64, 64, causal());
  float8.dtype = Dtype::kFloat8E4M3;
  refused(float8, general(), "e4m3");
  PlanOptions broadcast = general();
  const Strides rows = Strides::bshd(100, 1, 64);
  const Strides none = {rows.batch, 0, rows.row};
  broadcast.strides = {rows, none, none, rows, false};
  Problem heads = problem_of(100, 100, 64, 64, causal());
  heads.heads = heads.kv_heads = 2;
  refused(heads, broadcast, "stride");
}

}  // namespace
