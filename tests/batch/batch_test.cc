// Batches of requests on a device, compared with the oracle.

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "annulus/types.h"
#include "batch/batch_case.h"
#include "support/device.h"
#include "support/options.h"

namespace {

using namespace annulus;
using test::BatchCase;
using test::Placing;
using test::Request;

const Device& device() {
  static const Device opened = Device::open(test::device_name());
  return opened;
}

BatchProblem problem_of(std::int64_t heads, std::int64_t kv_heads, std::int64_t dim,
                        const Pattern& pattern) {
  BatchProblem problem;
  problem.heads = heads;
  problem.kv_heads = kv_heads;
  problem.dim_qk = problem.dim_v = dim;
  problem.pattern = pattern;
  problem.page_rows = 16;
  problem.want_lse = true;
  return problem;
}

void check(BatchProblem problem, const std::vector<Request>& requests, const Placing& placing,
           const std::string& what, const BatchOptions& options = {}) {
  problem.most = test::bounds_of(requests);
  problem.most.rows += placing.gap;
  const BatchPlan plan = plan_batch(device(), problem, options);
  const BatchCase step(device(), plan, requests, placing);
  step.run();
  test::check_answers(plan.problem(), requests, step.answers(), what);
  CHECK(plan.status(step.workspace()).rule == BatchRule::kNone);
}

TEST_CASE("decoding requests of many lengths in pages") {
  const std::vector<Request> requests = {{1, 1, 0, 1},  {1, 15, 0, 2},  {1, 16, 0, 3},
                                         {1, 17, 0, 4}, {1, 130, 0, 5}, {1, 300, 0, 6},
                                         {1, 64, 0, 7}, {1, 0, 0, 8}};
  check(problem_of(8, 2, 128, causal()), requests, {}, "pages of 16");
}

TEST_CASE("long requests are computed in parts and joined") {
  const std::vector<Request> requests = {
      {1, 700, 0, 1}, {1, 128, 0, 2}, {1, 129, 0, 3}, {1, 1000, 0, 4}};
  BatchOptions options;
  options.part_keys = 128;
  check(problem_of(4, 2, 64, causal()), requests, {.gap = 2}, "parts of 128", options);
}

TEST_CASE("heads and queries share the rows of a tile, whatever their numbers") {
  const std::vector<Request> requests = {{5, 70, 0, 1},  {1, 40, 0, 2}, {0, 30, 0, 3},
                                         {17, 17, 0, 4}, {9, 3, 0, 5},  {33, 150, 0, 6}};
  struct Heads {
    std::int64_t heads, kv_heads;
  };
  for (const Heads& of : {Heads{1, 1}, {3, 1}, {12, 2}, {16, 1}, {24, 1}, {4, 4}}) {
    check(problem_of(of.heads, of.kv_heads, 64, causal()), requests, {.gap = 1},
          std::to_string(of.heads) + " heads over " + std::to_string(of.kv_heads));
  }
}

TEST_CASE("patterns whose rows are runs") {
  const std::vector<Request> requests = {{1, 300, 0, 1}, {4, 200, 50, 2}, {20, 90, 0, 3},
                                         {1, 5, 0, 4},   {3, 2, 0, 5},    {40, 40, 7, 6}};
  BatchOptions options;
  options.part_keys = 128;
  for (const char* text :
       {"dense", "causal & window(63, 0)", "causal & (window(40, 0) | sink(8))", "sink(20)",
        "causal | prefix(30)", "window(31, 31) | global(16)", "causal & keys(20, 150)",
        "causal & (window(9, 0) | sink(4) | keys(60, 70))", "queries(10, 60) & causal",
        "causal & ~keys(30, 50)", "documents([0, 37, 120]) & causal"}) {
    check(problem_of(4, 2, 64, Pattern::parse(text)), requests, {.listed = true}, text, options);
  }
}

TEST_CASE("queries of one tile may see runs of many forms") {
  const std::vector<Request> requests = {{40, 130, -75, 1}};
  for (const char* text :
       {"queries(0, 20) & keys(0, 10) | queries(22, 90) & keys(30, 40)",
        "queries(0, 20) & keys(0, 10) | queries(20, 22) & keys(30, 40) | queries(22, 90) & "
        "keys(15, 20)"}) {
    check(problem_of(4, 2, 64, Pattern::parse(text)), requests, {}, text);
  }
}

TEST_CASE("keys may lie anywhere") {
  const std::vector<Request> requests = {
      {1, 90, 0, 1}, {2, 33, 0, 2}, {1, 200, 0, 3}, {1, 0, 0, 4}};
  BatchOptions options;
  options.part_keys = 128;
  const Pattern pattern = Pattern::parse("causal & window(150, 0)");
  for (const std::int64_t rows : {0, 1, 3, 16, 24, 48}) {
    for (int form = 0; form < 6; ++form) {
      const Placing placing = {.heads_first = form % 2 == 1,
                               .together = form % 3 == 2,
                               .listed = form >= 2,
                               .own_tables = form == 3,
                               .slabs = form % 2 == 0,
                               .seed = static_cast<std::uint64_t>(form)};
      BatchProblem problem = problem_of(2, 1, 64, pattern);
      problem.page_rows = rows;
      check(problem, requests, placing,
            "pages of " + std::to_string(rows) + ", form " + std::to_string(form), options);
    }
  }
}

TEST_CASE("requests may share all their keys") {
  const std::vector<Request> requests = {{40, 90, 0, 5}, {1, 60, 0, 5}, {50, 200, 0, 5}};
  BatchProblem problem = problem_of(4, 2, 64, causal());
  problem.page_rows = 0;
  problem.most = test::bounds_of(requests);
  const BatchPlan plan = plan_batch(device(), problem);
  const BatchCase step(device(), plan, requests, {.slabs = true});
  BatchOperands operands = step.operands();
  // All requests use the last request's slab.
  const auto last = [](const void* data, const BatchStrides& strides) {
    return static_cast<const std::uint16_t*>(data) + 2 * strides.page;
  };
  operands.k = last(operands.k, operands.k_strides);
  operands.v = last(operands.v, operands.v_strides);
  operands.k_strides.page = operands.v_strides.page = 0;
  plan.prepare(nullptr, step.metadata(), step.workspace());
  plan.run(nullptr, operands, step.workspace());
  test::check_answers(problem, requests, step.answers(), "one slab");
}

TEST_CASE("more heads of a group than a tile has rows") {
  check(problem_of(260, 2, 64, causal()), {{3, 40, 0, 1}}, {}, "130 heads");
}

TEST_CASE("head dims, dtypes and scores") {
  const std::vector<Request> requests = {
      {1, 200, 0, 1}, {3, 50, 10, 2}, {1, 1, 0, 3}, {40, 150, 0, 4}};
  BatchOptions options;
  options.part_keys = 128;
  // The campaign tests both dtypes with each head dim. Here they alternate.
  Dtype dtype = Dtype::kFloat16;
  for (const HeadDims& dims : supported_dims()) {
    BatchProblem problem = problem_of(4, 2, dims.qk, causal());
    problem.dim_v = dims.v;
    problem.dtype = dtype;
    check(problem, requests, {}, std::to_string(dims.qk) + "/" + std::to_string(dims.v), options);
    dtype = dtype == Dtype::kFloat16 ? Dtype::kBfloat16 : Dtype::kFloat16;
  }
  std::vector<Score> scores(6);
  scores[0].softcap = 20;
  scores[1].alibi = {0.1, 0.2, 0.05, 0.3};
  scores[2].bias = {{0.5, -0.25, 0.125, 1, 0.75}, {1, 2, 3, 2, 1}};
  scores[3].sink_logit = {0.5, -1, 2, 0};
  scores[4].scale = -0.3;
  scores[5].score_mod = ScoreExpression::parse("score + 0.01 * (k - q) * (h + 1)");
  for (std::size_t i = 0; i < scores.size(); ++i) {
    BatchProblem problem = problem_of(4, 1, 64, Pattern::parse("causal & window(99, 0)"));
    problem.score = scores[i];
    problem.lse_base = i % 2 == 0 ? LseBase::kNatural : LseBase::kTwo;
    check(problem, requests, {}, "score " + std::to_string(i), options);
  }
}

TEST_CASE("a state is carried in and out") {
  const std::vector<Request> requests = {
      {1, 300, 0, 1}, {3, 50, 10, 2}, {2, 0, 0, 3}, {1, 40, 0, 4}};
  BatchOptions options;
  options.part_keys = 128;
  for (const bool in : {false, true}) {
    for (const bool out : {false, true}) {
      BatchProblem problem = problem_of(4, 2, 64, causal());
      problem.carry_in = in;
      problem.carry_out = out;
      problem.want_lse = !out;
      check(problem, requests, {.gap = 1}, std::string(in ? "in" : "") + (out ? " out" : ""),
            options);
    }
  }
  BatchProblem in_place = problem_of(4, 2, 64, causal());
  in_place.carry_in = in_place.carry_out = true;
  in_place.want_lse = false;
  check(in_place, requests, {.in_place = true}, "out over in", options);
}

}  // namespace
