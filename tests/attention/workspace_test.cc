// Plans with less workspace. They give the same answer, and name each step.

#include <doctest/doctest.h>

#include <string>

#include "annulus/types.h"
#include "attention/on_device.h"

namespace {

using namespace annulus;
using test::Case;
using test::device;
using test::problem_of;

std::string decisions(const Plan& plan) {
  std::string text;
  for (const std::string& line : plan.info().decisions) text += line + '\n';
  return text;
}

TEST_CASE("batches in parts share the states of split rows, and change no bit") {
  Problem problem = problem_of(3, 760, 64, 64, causal() & batches({dense(), window(400, 0)}));
  problem.batch = 5;
  problem.heads = 2;
  const Case c = test::make_case(problem, 3);
  PlanOptions options;
  options.kv_splits = 4;
  const Plan plan = device().plan(problem, options);
  const auto all = static_cast<std::int64_t>(plan.workspace_bytes());
  REQUIRE(all > 0);
  const test::DeviceAnswer expected = test::run_case(device(), c, options);
  test::check(c, expected);
  for (const std::int64_t parts : {2, 3, 5}) {
    CAPTURE(parts);
    options.max_workspace_bytes = all / parts;
    const Plan less = device().plan(problem, options);
    CHECK(static_cast<std::int64_t>(less.workspace_bytes()) <= all / parts);
    CHECK(less.workspace_bytes() > 0);
    CHECK(less.info().launches > plan.info().launches);
    CHECK_MESSAGE(decisions(less).find("the 5 batches run") != std::string::npos, decisions(less));
    CHECK(test::run_case(device(), c, options) == expected);
    CHECK(device().memory_needed(problem, options).workspace_bytes ==
          static_cast<std::int64_t>(less.workspace_bytes()));
  }
  options.max_workspace_bytes = all / 6;
  try {
    device().plan(problem, options);
    FAIL("one batch needs more");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kOutOfMemory);
    CHECK(std::string(error.what()).find(std::to_string(all)) != std::string::npos);
  }
}

TEST_CASE("a split that the model chose becomes coarser") {
  Problem problem = problem_of(2, 4000, 64, 64, dense());
  problem.heads = 2;
  const Case c = test::make_case(problem, 4);
  PlanOptions options;
  const Plan plan = device().plan(problem, options);
  const auto all = static_cast<std::int64_t>(plan.workspace_bytes());
  REQUIRE(all > 0);
  std::int64_t before = all;
  for (const std::int64_t room : {all - 1, all / 3, std::int64_t{1}}) {
    CAPTURE(room);
    options.max_workspace_bytes = room;
    const Plan less = device().plan(problem, options);
    const auto bytes = static_cast<std::int64_t>(less.workspace_bytes());
    CHECK(bytes <= room);
    CHECK(bytes <= before);
    before = bytes;
    CHECK_MESSAGE(decisions(less).find("the longest tile rows") != std::string::npos,
                  decisions(less));
    test::check(c, test::run_case(device(), c, options));
  }
  CHECK(before == 0);
}

TEST_CASE("the state between branches is that of a part of the batches") {
  Problem problem =
      problem_of(130, 200, 64, 64, Pattern::parse("sum(causal, window(40,0), strided(3,0,4))"));
  problem.batch = 4;
  problem.heads = 2;
  for (const int splits : {1, 3}) {
    CAPTURE(splits);
    const Case c = test::make_case(problem, 5);
    PlanOptions options;
    options.kv_splits = splits;
    const Plan plan = device().plan(problem, options);
    const auto all = static_cast<std::int64_t>(plan.workspace_bytes());
    const test::DeviceAnswer expected = test::run_case(device(), c, options);
    test::check(c, expected);
    for (const std::int64_t parts : {2, 4}) {
      options.max_workspace_bytes = all / parts + 256;  // the data after the state is aligned
      const Plan less = device().plan(problem, options);
      CHECK(static_cast<std::int64_t>(less.workspace_bytes()) <= options.max_workspace_bytes);
      CHECK_MESSAGE(decisions(less).find("state between branches") != std::string::npos,
                    decisions(less));
      CHECK(test::run_case(device(), c, options) == expected);
    }
  }
}

TEST_CASE("batches in parts are at most 65,536 launches, however little workspace there is") {
  Problem problem = problem_of(1, 600, 64, 64, dense());
  problem.batch = std::int64_t{1} << 24;
  problem.heads = problem.kv_heads = 1;
  PlanOptions options;
  options.kv_splits = 2;
  const std::int64_t of_batch = device().memory_needed(problem, options).workspace_bytes / 65535;
  REQUIRE(of_batch > 0);
  // The workspace is for at least 256 batches at a time.
  options.max_workspace_bytes = of_batch * 256;
  CHECK(device().memory_needed(problem, options).workspace_bytes == of_batch * 256);
  for (const std::int64_t room : {of_batch * 256 - 1, std::int64_t{1}}) {
    options.max_workspace_bytes = room;
    CHECK_THROWS_WITH_AS(device().memory_needed(problem, options),
                         doctest::Contains("after all steps that need less"), Error);
  }
}

TEST_CASE("a limit on workspace that is no number of bytes is refused") {
  PlanOptions options;
  options.max_workspace_bytes = -1;
  CHECK_THROWS_WITH_AS(device().plan(problem_of(3, 3, 64, 64, dense()), options),
                       doctest::Contains("max_workspace_bytes is -1"), Error);
}

}  // namespace
