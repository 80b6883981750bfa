// Batches whose rows of Q have separate limits: ends, and trees of drafts.

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "annulus/types.h"
#include "batch/batch_case.h"

namespace {

using namespace annulus;
using test::Answer;
using test::BatchCase;
using test::device;
using test::in_parts;
using test::Request;

// Trees over few and over many keys, a chain of drafts, a chunk, and requests with no keys or one
// key.
const std::vector<Request> kRequests = {{7, 300, 0, 1}, {12, 12, 9, 2},  {1, 200, 0, 3},
                                        {5, 66, 0, 4},  {40, 90, 0, 5},  {1, 0, 0, 6},
                                        {1, 1, 0, 7},   {10, 150, 40, 8}};

BatchProblem problem_for(const std::vector<Request>& requests) {
  BatchProblem problem = test::problem_for(requests, 8);
  problem.row_limits = true;
  return problem;
}

TEST_CASE("rows see the keys before their ends, and of the newest ones those of their tree") {
  for (const char* pattern : {"causal", "dense", "causal & (window(150, 0) | sink(4))"}) {
    BatchProblem problem = problem_for(kRequests);
    problem.pattern = Pattern::parse(pattern);
    problem.most.rows += 2;
    const BatchPlan plan = plan_batch(device(), problem, in_parts());
    const BatchCase step(device(), plan, kRequests, {.nan = true, .gap = 2, .seed = 1});
    step.run();
    test::check_answers(problem, kRequests, step.answers(), pattern);
    CHECK(plan.status(step.workspace()).rule == BatchRule::kNone);
  }
}

TEST_CASE("limits of rows and lists of blocks go together") {
  BatchProblem problem = problem_for(kRequests);
  problem.block_keys = 32;
  problem.max_blocks = 5;
  const BatchPlan plan = plan_batch(device(), problem, in_parts());
  const BatchCase step(device(), plan, kRequests, {.nan = true});
  step.run();
  test::check_answers(problem, kRequests, step.answers(), "blocks of 32");
}

std::vector<std::int32_t> ends_of(const std::vector<Request>& requests, std::int32_t less) {
  std::vector<std::int32_t> ends;
  for (const Request& request : requests) {
    for (std::int64_t row = 0; row < request.queries; ++row) {
      ends.push_back(static_cast<std::int32_t>(request.keys) - less);
    }
  }
  return ends;
}
void set(const BatchCase& step, const std::vector<std::int32_t>& ends) {
  device().copy_to_device(const_cast<std::int32_t*>(step.metadata().row_end), ends.data(),
                          ends.size() * 4);
}

TEST_CASE("limits that hide nothing change no bit") {
  BatchProblem whole = problem_for(kRequests);
  whole.row_limits = false;
  const BatchPlan plain = plan_batch(device(), whole, in_parts());
  const BatchCase without(device(), plain, kRequests, {});
  without.run();
  const std::vector<Answer> expected = without.answers();

  const BatchPlan plan = plan_batch(device(), problem_for(kRequests), in_parts());
  const BatchCase step(device(), plan, kRequests, {});
  set(step, ends_of(kRequests, 0));
  BatchMetadata metadata = step.metadata();
  metadata.tree_bits = nullptr;
  plan.prepare(nullptr, metadata, step.workspace());
  plan.run(nullptr, step.operands(), step.workspace());
  CHECK(step.answers() == expected);

  std::vector<std::uint64_t> all(ends_of(kRequests, 0).size(), ~std::uint64_t{0});
  device().copy_to_device(const_cast<std::uint64_t*>(step.metadata().tree_bits), all.data(),
                          all.size() * 8);
  metadata = step.metadata();
  metadata.row_end = nullptr;
  plan.prepare(nullptr, metadata, step.workspace());
  plan.run(nullptr, step.operands(), step.workspace());
  CHECK(step.answers() == expected);
}

TEST_CASE("a wrong end is that row's alone, and the status names its request") {
  BatchProblem problem = problem_for(kRequests);
  const BatchPlan plan = plan_batch(device(), problem, in_parts());
  const BatchCase step(device(), plan, kRequests, {});
  std::vector<std::int32_t> ends = ends_of(kRequests, 0);
  const auto answers_with = [&](std::int32_t end) {
    std::vector<std::int32_t> spoilt = ends;
    spoilt[8] = end;  // the second row of request 1
    set(step, spoilt);
    step.run();
    return step.answers();
  };
  const std::vector<Answer> all = answers_with(12), none = answers_with(0);
  CHECK(plan.status(step.workspace()).rule == BatchRule::kNone);
  CHECK(answers_with(13) == all);
  CHECK(plan.status(step.workspace()).rule == BatchRule::kRowEnd);
  CHECK(plan.status(step.workspace()).request == 1);
  CHECK(answers_with(std::numeric_limits<std::int32_t>::max()) == all);
  CHECK(answers_with(-1) == none);
  CHECK(answers_with(std::numeric_limits<std::int32_t>::min()) == none);
  CHECK(plan.status(step.workspace()).rule == BatchRule::kRowEnd);
  CHECK(all != none);
}

TEST_CASE("pages that a window has left behind may be none, wherever rows end") {
  const std::vector<Request> requests = {{1, 300, 0, 1}, {40, 300, 0, 2}};
  constexpr std::int32_t kEnd = 40;  // before the windows of all rows
  BatchProblem problem = problem_for(requests);
  problem.pattern = Pattern::parse("causal & (window(15, 0) | sink(4))");
  const BatchPlan plan = plan_batch(device(), problem, in_parts());
  const BatchCase step(device(), plan, requests, {});
  set(step, std::vector<std::int32_t>(41, kEnd));
  BatchMetadata metadata = step.metadata();
  metadata.tree_bits = nullptr;
  // No query sees keys of pages 1 to 14.
  const std::vector<std::int32_t> none(14, -1);
  for (std::int64_t r = 0; r < 2; ++r) {
    device().copy_to_device(
        const_cast<std::int32_t*>(metadata.k_pages.ids) + r * metadata.k_pages.width + 1,
        none.data(), none.size() * 4);
  }
  plan.prepare(nullptr, metadata, step.workspace());
  plan.run(nullptr, step.operands(), step.workspace());
  CHECK(plan.status(step.workspace()).rule == BatchRule::kNone);
  BatchProblem sink_alone = test::problem_for(requests, 8);
  sink_alone.pattern = sink(4);
  test::check_answers(sink_alone, requests, step.answers(), "rows that end before their windows");
}

TEST_CASE("a problem with limits needs one of them") {
  const BatchPlan plan = plan_batch(device(), problem_for(kRequests), in_parts());
  const BatchCase step(device(), plan, kRequests, {});
  BatchMetadata metadata = step.metadata();
  metadata.row_end = nullptr;
  metadata.tree_bits = nullptr;
  CHECK_THROWS_WITH_AS(plan.prepare(nullptr, metadata, step.workspace()),
                       doctest::Contains("give one of them"), Error);
  metadata.tree_bits = reinterpret_cast<const std::uint64_t*>(
      reinterpret_cast<std::uintptr_t>(step.metadata().tree_bits) + 4);
  CHECK_THROWS_WITH_AS(plan.prepare(nullptr, metadata, step.workspace()),
                       doctest::Contains("tree_bits"), Error);
}

}  // namespace
