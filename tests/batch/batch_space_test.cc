// Every legal configuration, shipped or not, compared with the oracle, because a tuner may choose
// any.

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <vector>

#include "annulus/batch.h"
#include "api/impl.h"
#include "base/random.h"
#include "batch/batch_case.h"
#include "batch/batch_choice.h"
#include "batch/batch_config.h"
#include "support/options.h"

namespace {

using namespace annulus;
using attention::KernelConfig;
using batch::RequestClass;
using test::BatchCase;
using test::device;
using test::Placing;
using test::Request;

// A legal configuration for few queries, and one for many. For each head dim, all_pairs() uses
// every configuration at least once, in a random order.
struct Pair {
  attention::Dims dims;
  KernelConfig few, many;
};
std::vector<Pair> all_pairs(base::Random* random) {
  const attention::DeviceLimits limits = api::limits_of(api::inside(device()));
  std::vector<Pair> pairs;
  for (const HeadDims& of : supported_dims()) {
    const attention::Dims dims{of.qk, of.v};
    std::vector<KernelConfig> few, many;
    for (const batch::BatchKernel* kernel : batch::batch_kernels()) {
      std::vector<KernelConfig>* const to =
          kernel->requests == RequestClass::kFewQueries ? &few : &many;
      kernel->enumerate([&](std::span<const KernelConfig> alternatives) {
        for (const KernelConfig& config : alternatives) {
          if (!batch::why_not(config, dims, limits)) to->push_back(config);
        }
      });
    }
    for (std::vector<KernelConfig>* const each : {&few, &many}) {
      REQUIRE_FALSE(each->empty());
      for (std::size_t i = each->size() - 1; i > 0; --i) {
        std::swap((*each)[i], (*each)[random->below(static_cast<std::uint32_t>(i + 1))]);
      }
    }
    for (std::size_t i = 0; i < std::max(few.size(), many.size()); ++i) {
      pairs.push_back({dims, few[i % few.size()], many[i % many.size()]});
    }
  }
  return pairs;
}

// A problem with one of several kinds of pages, patterns that end within tiles, lists of blocks,
// and rows with limits, in turn.
BatchProblem problem_of(const Pair& pair, const std::vector<Request>& requests, std::size_t turn) {
  static constexpr std::int64_t kPages[] = {16, 7, 0, 64};
  static constexpr const char* kPatterns[] = {"causal", "causal & (window(70, 0) | sink(9))",
                                              "heads(causal, causal & window(50, 0))"};
  BatchProblem problem = test::problem_for(requests, 8);
  problem.dim_qk = pair.dims.qk;
  problem.dim_v = pair.dims.v;
  problem.most.rows += 1;  // a row between requests that belongs to no request
  problem.dtype = turn % 2 == 0 ? Dtype::kBfloat16 : Dtype::kFloat16;
  problem.page_rows = kPages[turn % 4];
  problem.pattern = Pattern::parse(kPatterns[turn % 3]);
  problem.row_limits = turn % 5 == 1;
  if (turn % 4 == 1 && batch::kernel_of(pair.many).takes_lists) {
    problem.block_keys = 32;
    problem.max_blocks = 9;
  }
  return problem;
}

// Tests all pairs if --problems is large enough, or else a sample of that size, drawn by --seed.
TEST_CASE("every legal configuration gives the oracle's answers") {
  base::Random random(test::seed_of(51));
  std::vector<Pair> pairs = all_pairs(&random);
  const int count = test::options().problems > 0 ? test::options().problems : 10;
  while (pairs.size() > static_cast<std::size_t>(count)) {
    std::swap(pairs[random.below(static_cast<std::uint32_t>(pairs.size()))], pairs.back());
    pairs.pop_back();
  }
  // Pipelines go round more than once, and every length ends within a tile.
  const std::vector<Request> requests = {
      {1, 700, 0, 1}, {3, 37, 5, 2}, {40, 333, 0, 3}, {1, 0, 0, 4}, {33, 33, 0, 5}};
  std::size_t turn = 0;
  for (const Pair& pair : pairs) {
    BatchOptions options = test::in_parts();
    options.max_multiprocessors = 2;
    options.config = fmt::format("{}, {}", to_string(pair.few), to_string(pair.many));
    const BatchProblem problem = problem_of(pair, requests, turn++);
    CAPTURE(options.config);
    CAPTURE(pair.dims.qk);
    CAPTURE(pair.dims.v);
    const BatchPlan plan = plan_batch(device(), problem, options);
    CHECK(plan.info().config == options.config);
    CHECK(plan.info().shared_bytes == attention::shared_bytes(pair.few, pair.dims));
    const BatchCase step(device(), plan, requests,
                         {.listed = turn % 2 == 0, .own_tables = true, .gap = 1, .seed = turn});
    step.run();
    test::check_answers(plan.problem(), requests, step.answers(), options.config);
    CHECK(plan.status(step.workspace()).rule == BatchRule::kNone);
  }
}

}  // namespace
