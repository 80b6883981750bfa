// Keys that are interleaved between ranks. The merged answers of all ranks must be the answer over
// all keys, for any lengths, blocks and patterns.

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "annulus/batch.h"
#include "annulus/types.h"
#include "base/random.h"
#include "batch/batch_case.h"
#include "batch/interleaved_step.h"
#include "support/device.h"
#include "support/options.h"
#include "support/random_problem.h"

namespace {

using namespace annulus;
using test::device;
using test::InterleavedStep;
using test::Placing;
using test::Request;

TEST_CASE("a rank holds the keys of its blocks") {
  base::Random random(7);
  for (int i = 0; i < 200; ++i) {
    KeyInterleave of;
    of.block = 1 + random.below(70);
    of.ranks = 1 + random.below(9);
    std::vector<std::int64_t> held(static_cast<std::size_t>(of.ranks), 0);
    const std::int64_t keys = random.below(1200);
    for (std::int64_t key = 0; key <= keys; ++key) {
      for (of.rank = 0; of.rank < of.ranks; ++of.rank) {
        REQUIRE(held_keys(of, key) == held[static_cast<std::size_t>(of.rank)]);
      }
      ++held[static_cast<std::size_t>(key / of.block % of.ranks)];
    }
  }
  const auto code_of = [](KeyInterleave of, std::int64_t keys) {
    try {
      held_keys(of, keys);
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::kInternal;
  };
  CHECK(code_of({1, 4, 4}, 8) == ErrorCode::kInvalidArgument);
  CHECK(code_of({1, 4, -1}, 8) == ErrorCode::kInvalidArgument);
  CHECK(code_of({0, 4, 0}, 8) == ErrorCode::kInvalidArgument);
  CHECK(code_of({1, 1025, 0}, 8) == ErrorCode::kInvalidArgument);
  CHECK(code_of({1, 4, 0}, -1) == ErrorCode::kInvalidArgument);
  CHECK(code_of({1 << 24, 2, 0}, 1) == ErrorCode::kUnsupported);
}

// The properties for which a problem's kernels are compiled. Several problems share them.
BatchProblem draw_problem(base::Random& random) {
  static constexpr std::array<const char*, 10> kPatterns = {
      "causal",
      "causal & (window(70, 0) | sink(9))",
      "dense",
      "causal & window(200, 0)",
      "window(20, 20) | global(5)",
      "causal & keys(20, 150)",
      "documents([0, 37, 120]) & causal",
      "causal & ~keys(30, 50)",
      "heads(causal & window(30, 0), dense, sink(20) | keys(60, 90), queries(0, 40))",
      "causal & head_groups(2, dense, window(40, 40))"};
  static constexpr std::array<std::array<std::int64_t, 2>, 4> kHeads = {
      {{4, 2}, {8, 2}, {12, 3}, {5, 5}}};
  const auto any_of = [&](const auto& all) {
    return all[random.below(static_cast<std::uint32_t>(std::size(all)))];
  };
  BatchProblem problem;
  const auto heads = any_of(kHeads);
  problem.heads = heads[0];
  problem.kv_heads = heads[1];
  const HeadDims dims = random.below(2) == 0 ? HeadDims{64, 64} : any_of(supported_dims());
  problem.dim_qk = dims.qk;
  problem.dim_v = dims.v;
  problem.dtype = random.below(3) == 0 ? Dtype::kFloat16 : Dtype::kBfloat16;
  problem.pattern = Pattern::parse(any_of(kPatterns));
  problem.score = test::random_score(random, problem.score, problem.heads);
  problem.score.sink_logit.clear();  // the sink logit would count once for each rank
  problem.want_lse = true;
  problem.lse_base = random.below(2) == 0 ? LseBase::kNatural : LseBase::kTwo;
  problem.row_limits = random.below(4) == 0;
  return problem;
}

std::vector<Request> draw_requests(base::Random& random, std::uint64_t seed) {
  std::vector<Request> made(1 + random.below(6));
  for (Request& request : made) {
    request.queries = random.below(3) > 0 ? 1 + random.below(16) : random.below(70);
    request.keys = random.below(4) == 0 ? random.below(9) : random.below(500);
    request.position = random.below(4) == 0 ? random.below(1000) : 0;
    request.seed = seed * 100 + random.below(1000);
  }
  return made;
}

TEST_CASE("random batches of interleaved keys, merged, give the oracle's answers") {
  const bool many = test::options().problems > 0;
  const int count = many ? test::options().problems : 8;
  static constexpr std::int64_t kPages[4][3] = {{0, 0, 0}, {1, 7, 19}, {16, 48, 80}, {64, 64, 128}};
  for (int i = 0; i < count; ++i) {
    const std::uint64_t first = test::seed_of(5300) * 100000;
    const std::uint64_t seed = first + static_cast<std::uint64_t>(i);
    base::Random of_kernel(first + static_cast<std::uint64_t>(many ? i / 10 : i)), random(seed);
    BatchProblem problem = draw_problem(of_kernel);
    problem.page_rows = kPages[of_kernel.below(4)][random.below(3)];
    problem.interleave.ranks = 1 + random.below(8);
    problem.interleave.block = random.below(2) == 0 ? 1 + random.below(3) : 1 + random.below(64);
    const std::vector<Request> requests = draw_requests(random, seed);
    problem.most = test::bounds_of(requests);
    BatchOptions options;
    options.part_keys = 128 * random.below(3);
    SimulationOptions simulation;
    simulation.seed = seed;
    device().set_simulation(simulation);
    const Placing placing = {.heads_first = random.below(2) == 0,
                             .listed = random.below(2) == 0,
                             .own_tables = random.below(3) == 0,
                             .slabs = random.below(2) == 0,
                             .nan = random.below(2) == 0,
                             .seed = random.below(1000000)};
    const std::string name = fmt::format(
        "batch {} over {} ranks in blocks of {}: {}/{} heads of {}/{}, {}, {}, pages of {}{}{}",
        seed, problem.interleave.ranks, problem.interleave.block, problem.heads, problem.kv_heads,
        problem.dim_qk, problem.dim_v, problem.pattern.to_string(), problem.score.to_string(),
        problem.page_rows, problem.row_limits ? ", rows with limits" : "",
        placing.nan ? ", NaN in between" : "");
    INFO(name);
    InterleavedStep step(device(), problem, options, requests, placing);
    CHECK(step.broken_rule() == BatchRule::kNone);
    CHECK(step.first_wrong() == "");
  }
}

TEST_CASE("a rank without a key answers that it has seen none") {
  BatchProblem problem = test::problem_for({}, 8);
  problem.interleave = {.block = 16, .ranks = 8, .rank = 0};
  const std::vector<Request> requests = {{1, 1, 0, 1}, {16, 16, 0, 2}, {1, 0, 0, 3}, {2, 40, 0, 4}};
  problem.most = test::bounds_of(requests);
  InterleavedStep step(device(), problem, {}, requests, {.nan = true});
  for (const test::Answer& answer : step.of_rank(7)) {
    for (const std::uint16_t bits : answer.o) CHECK(bits == 0);
    for (const float lse : answer.lse) CHECK(lse == -std::numeric_limits<float>::infinity());
  }
  CHECK(step.first_wrong() == "");
}

TEST_CASE("a rank needs pages for its own keys alone, and the status names what it lacks") {
  BatchProblem problem = test::problem_for({}, 8);
  problem.interleave = {.block = 4, .ranks = 4, .rank = 1};
  const std::vector<Request> requests = {{1, 128, 0, 1}};
  problem.most = test::bounds_of(requests);
  const BatchPlan plan = plan_batch(device(), problem);
  const test::BatchCase step(device(), plan, requests, {});
  const auto rule_with = [&](std::int64_t entries) {
    BatchMetadata metadata = step.metadata();
    metadata.k_pages.width = entries;
    plan.prepare(nullptr, metadata, step.workspace());
    return plan.status(step.workspace()).rule;
  };
  CHECK(rule_with(2) == BatchRule::kNone);  // 32 keys in pages of 16
  CHECK(rule_with(1) == BatchRule::kPages);
}

TEST_CASE("what makes no sense of interleaved keys is refused") {
  const auto refused = [](const std::function<void(BatchProblem&)>& change) {
    BatchProblem problem = test::problem_for({{1, 100, 0, 1}}, 8);
    problem.interleave = {.block = 1, .ranks = 4, .rank = 0};
    change(problem);
    try {
      validate(problem);
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::kInternal;
  };
  CHECK(refused([](BatchProblem& of) { of.interleave.rank = 4; }) == ErrorCode::kInvalidArgument);
  CHECK(refused([](BatchProblem& of) { of.interleave.ranks = 0; }) == ErrorCode::kInvalidArgument);
  CHECK(refused([](BatchProblem& of) { of.interleave.block = 0; }) == ErrorCode::kInvalidArgument);
  CHECK(refused([](BatchProblem& of) { of.interleave.block = 1 << 23; }) ==
        ErrorCode::kUnsupported);
  CHECK(refused([](BatchProblem& of) { of.block_keys = 16, of.max_blocks = 4; }) ==
        ErrorCode::kUnsupported);
  AppendProblem append;
  append.dim_qk = append.dim_v = 64;
  append.most = {.requests = 1, .rows = 1, .keys_of_one = 8};
  append.interleave = {.block = 1, .ranks = 2, .rank = 0};
  CHECK_THROWS_WITH_AS(validate(append), doctest::Contains("slot -1"), Error);
  append.place = AppendPlace::kRequests;
  validate(append);
}

}  // namespace
