// Batches whose heads see different keys: patterns that differ from head to head, and lists of the
// blocks that each head of K and V sees.

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/math.h"
#include "batch/batch_case.h"

namespace {

using namespace annulus;
using test::Answer;
using test::BatchCase;
using test::device;
using test::in_parts;
using test::Placing;
using test::Request;

// Requests for decoding, for verifying a few tokens, and for chunks of prompts. Some have no keys
// or few.
const std::vector<Request> kRequests = {{1, 300, 0, 1}, {3, 260, 7, 2},  {40, 333, 0, 3},
                                        {1, 0, 0, 4},   {2, 1, 0, 5},    {90, 100, 300, 6},
                                        {0, 50, 0, 7},  {1, 129, 100, 8}};

BatchProblem problem_for(const std::vector<Request>& requests) {
  return test::problem_for(requests, 8);
}

std::vector<Answer> answers_of(const BatchProblem& problem, const std::vector<Request>& requests,
                               const Placing& placing) {
  const BatchPlan plan = plan_batch(device(), problem, in_parts());
  const BatchCase step(device(), plan, requests, placing);
  step.run();
  std::vector<Answer> answers = step.answers();
  CHECK(plan.status(step.workspace()).rule == BatchRule::kNone);
  return answers;
}

TEST_CASE("heads of a group, and groups, may see different keys") {
  for (const char* pattern :
       {"head_groups(4, causal & window(90, 0), causal & (sink(20) | window(30, 0)))",
        "heads(sink(3), dense, window(1, 1), causal | global(9), causal)"}) {
    BatchProblem problem = problem_for(kRequests);
    problem.pattern = Pattern::parse(pattern);
    test::check_answers(problem, kRequests, answers_of(problem, kRequests, {.nan = true}), pattern);
  }
}

TEST_CASE("groups that see the same share the rows of the lists") {
  BatchProblem problem = problem_for(kRequests);
  problem.pattern = Pattern::parse("heads(causal, causal & window(50, 0))");
  const BatchPlan alike = plan_batch(device(), problem, in_parts());
  problem.pattern = Pattern::parse("head_groups(4, causal, causal & window(50, 0))");
  const BatchPlan apart = plan_batch(device(), problem, in_parts());
  const std::string own = "each column of heads has works of its own";
  CHECK(alike.info().decisions.front().find(own) == std::string::npos);
  CHECK(apart.info().decisions.front().find(own) != std::string::npos);
}

TEST_CASE("a group of more heads than a tile has is read by tiles with forms of their own") {
  BatchProblem problem = problem_for(kRequests);
  problem.heads = 40;
  problem.pattern = Pattern::parse("head_groups(8, causal, causal & window(20, 0), sink(5))");
  test::check_answers(problem, kRequests, answers_of(problem, kRequests, {}), "40 heads");
}

TEST_CASE("a query sees the keys of the blocks that are listed, and no others") {
  struct Case {
    std::int64_t block_keys, max_blocks, page_rows;
    const char* pattern;
  };
  for (const Case& of : {Case{16, 9, 16, "causal"},
                         {64, 3, 16, "causal"},
                         {32, 30, 64, "causal"},
                         {48, 6, 7, "causal & (window(120, 0) | sink(10))"},
                         {128, 2, 0, "heads(causal, causal & window(60, 0))"}}) {
    BatchProblem problem = problem_for(kRequests);
    problem.block_keys = of.block_keys;
    problem.max_blocks = of.max_blocks;
    problem.page_rows = of.page_rows;
    problem.pattern = Pattern::parse(of.pattern);
    test::check_answers(
        problem, kRequests,
        answers_of(problem, kRequests, {.listed = true, .own_tables = true, .nan = true}),
        fmt::format("{} blocks of {}, pages of {}, {}", of.max_blocks, of.block_keys, of.page_rows,
                    of.pattern));
  }
}

TEST_CASE("the order of a list, pages and other requests change no bit") {
  BatchProblem problem = problem_for(kRequests);
  problem.block_keys = 32;
  problem.max_blocks = 7;
  const std::vector<Answer> together = answers_of(problem, kRequests, {.seed = 1});
  CHECK(answers_of(problem, kRequests, {.listed = true, .seed = 2}) == together);
  problem.page_rows = 64;
  CHECK(answers_of(problem, kRequests, {.heads_first = true, .seed = 3}) == together);
  for (std::size_t r = 0; r < kRequests.size(); r += 2) {
    CHECK(answers_of(problem, {kRequests[r]}, {.seed = 4}).front() == together[r]);
  }
}

// Copies the step's lists from the device, where they are input.
std::vector<std::int32_t> fetch(const BatchCase& step, std::size_t count) {
  std::vector<std::int32_t> entries(count);
  device().copy_to_host(entries.data(), step.metadata().blocks, count * 4);
  return entries;
}
void set(const BatchCase& step, const std::vector<std::int32_t>& entries) {
  device().copy_to_device(const_cast<std::int32_t*>(step.metadata().blocks), entries.data(),
                          entries.size() * 4);
}

TEST_CASE("with every block listed the bits are those without lists") {
  const BatchProblem whole = problem_for(kRequests);
  BatchProblem problem = whole;
  problem.block_keys = 64;
  problem.max_blocks = 6;
  const BatchPlan plan = plan_batch(device(), problem, in_parts());
  const BatchCase step(device(), plan, kRequests, {});
  std::vector<std::int32_t> entries;
  for (const Request& request : kRequests) {
    for (std::int64_t head = 0; head < problem.kv_heads; ++head) {
      for (std::int32_t i = 0; i < 6; ++i) {
        entries.push_back(i < base::ceil_div<std::int64_t>(request.keys, 64) ? i : -1);
      }
    }
  }
  set(step, entries);
  step.run();
  const auto answers = step.answers();
  const auto right = answers_of(whole, kRequests, {});
  // If there are no lists, a device may have another kernel for many queries.
  const bool same_kernels =
      plan_batch(device(), whole, in_parts()).info().config == plan.info().config;
  for (std::size_t r = 0; r < kRequests.size(); ++r) {
    if (!same_kernels && kRequests[r].queries > 20) continue;
    CAPTURE(r);
    CHECK(answers[r] == right[r]);
  }
}

TEST_CASE("a wrong list harms nobody, and the status names its request") {
  BatchProblem problem = problem_for(kRequests);
  problem.block_keys = 16;
  problem.max_blocks = 10;
  const BatchPlan plan = plan_batch(device(), problem, in_parts());
  const BatchCase step(device(), plan, kRequests, {});
  step.run();
  const std::vector<Answer> right = step.answers();
  const std::size_t lists = kRequests.size() * 2;
  const std::vector<std::int32_t> entries = fetch(step, lists * 10);
  // Wrong values for an unused entry of request 2, whose blocks are 0 to 20.
  for (const std::int32_t wrong : {-2, 21, 1 << 30, -(1 << 30)}) {
    std::vector<std::int32_t> spoilt = entries;
    const auto free = std::find(spoilt.begin() + 40, spoilt.begin() + 60, -1);
    REQUIRE(free != spoilt.begin() + 60);
    *free = wrong;
    set(step, spoilt);
    step.run();
    CHECK(step.answers() == right);
    CHECK(plan.status(step.workspace()).rule == BatchRule::kBlocks);
    CHECK(plan.status(step.workspace()).request == 2);
  }
  // A block that is listed twice counts once.
  std::vector<std::int32_t> twice = entries;
  const auto list = twice.begin() + 40;
  const auto free = std::find(list, list + 10, -1);
  const auto named = std::find_if(list, list + 10, [](std::int32_t block) { return block >= 0; });
  REQUIRE(free != list + 10);
  REQUIRE(named != list + 10);
  *free = *named;
  set(step, twice);
  step.run();
  CHECK(step.answers() == right);
  CHECK(plan.status(step.workspace()).rule == BatchRule::kBlocks);
}

TEST_CASE("lists of requests that lost their keys take no room from those of others") {
  // Two requests state more keys than the whole step may have, and have other errors too.
  const std::vector<Request> requests = {{1, 1500, 0, 1}, {1, 1500, 0, 2}, {2, 300, 0, 3}};
  BatchProblem problem = problem_for(requests);
  problem.block_keys = 16;
  problem.max_blocks = 100;
  problem.most.keys = 400;
  const BatchPlan plan = plan_batch(device(), problem, in_parts());
  const BatchCase step(device(), plan, requests, {});
  std::vector<std::int32_t> entries;
  for (const Request& request : requests) {
    for (std::int64_t head = 0; head < problem.kv_heads; ++head) {
      for (std::int32_t i = 0; i < 100; ++i) {
        entries.push_back(i < base::ceil_div<std::int64_t>(request.keys, 16) ? i : -1);
      }
    }
  }
  set(step, entries);
  const std::int32_t wrong[] = {1 << 30, 1 << 30};
  device().copy_to_device(const_cast<std::int32_t*>(step.metadata().k_position), wrong,
                          sizeof(wrong));
  step.run();
  CHECK(plan.status(step.workspace()).rule == BatchRule::kPosition);
  const BatchProblem whole = problem_for({requests[2]});
  CHECK(step.answers()[2] == answers_of(whole, {requests[2]}, {}).front());
}

TEST_CASE("pages of blocks that are not listed are never looked up") {
  const std::vector<Request> requests = {{1, 256, 0, 3}};
  BatchProblem problem = problem_for(requests);
  problem.block_keys = 32;
  problem.max_blocks = 8;
  const BatchPlan plan = plan_batch(device(), problem, in_parts());
  const BatchCase step(device(), plan, requests, {});
  step.run();
  const std::vector<Answer> right = step.answers();
  const std::vector<std::int32_t> entries = fetch(step, 16);
  for (std::int32_t block = 0; block < 8; ++block) {
    if (std::find(entries.begin(), entries.end(), block) != entries.end()) continue;
    const std::int32_t none[] = {-7, -7};
    device().copy_to_device(const_cast<std::int32_t*>(step.metadata().k_pages.ids) + 2 * block,
                            none, sizeof(none));
  }
  step.run();
  CHECK(step.answers() == right);
  CHECK(plan.status(step.workspace()).rule == BatchRule::kNone);
}

}  // namespace
