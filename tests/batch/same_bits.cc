#include "batch/same_bits.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "base/random.h"
#include "program/input/batch_step.h"

namespace annulus::test {
namespace {

using program::BatchStep;
using program::Placing;
using program::Request;
using program::RequestAnswer;

constexpr std::int64_t kMaxTogether = 16, kMaxKeys = 400;

// Requests with few queries. One in eight has so many that the kernel of chunks computes it.
std::vector<Request> draw_requests(std::int64_t count, base::Random& random, std::uint64_t seed) {
  std::vector<Request> requests;
  for (std::int64_t i = 0; i < count; ++i) {
    Request& request = requests.emplace_back();
    request.queries = random.below(8) == 0 ? 17 + random.below(20) : 1 + random.below(3);
    request.keys = random.below(10) == 0 ? random.below(20) : random.below(kMaxKeys);
    request.position = random.below(4) == 0 ? random.below(1000) : 0;
    request.seed = seed * 1000 + static_cast<std::uint64_t>(i);
  }
  return requests;
}

BatchPlan plan_for(const Device& device, std::int64_t page_rows) {
  BatchProblem problem;
  problem.heads = 4;
  problem.kv_heads = 1;
  problem.dim_qk = problem.dim_v = 64;
  problem.pattern = causal();
  problem.page_rows = page_rows;
  problem.want_lse = true;
  problem.most = {.requests = kMaxTogether,
                  .rows = kMaxTogether * 40,
                  .rows_of_one = 40,
                  .keys_of_one = kMaxKeys,
                  .keys = kMaxTogether * kMaxKeys};
  BatchOptions options;
  options.part_keys = 128;
  return plan_batch(device, problem, options);
}

std::vector<RequestAnswer> run(const Device& device, const BatchPlan& plan,
                               const std::vector<Request>& requests, const Placing& placing) {
  const BatchStep step(device, plan, requests, placing);
  step.run();
  bool untouched = false;
  return step.answers(&untouched);
}

}  // namespace

SameBits compare_bits(const Device& device, std::int64_t requests, std::int64_t rounds,
                      std::uint64_t seed) {
  constexpr std::int64_t kPageRows[] = {16, 64, 7, 128};
  base::Random random(seed);
  const std::vector<Request> all = draw_requests(requests, random, seed);
  const BatchPlan without_pages = plan_for(device, 0);
  std::vector<RequestAnswer> alone;
  for (const Request& request : all) {
    alone.push_back(run(device, without_pages, {request}, {.seed = request.seed})[0]);
  }
  std::vector<BatchPlan> plans;
  for (const std::int64_t rows : kPageRows) plans.push_back(plan_for(device, rows));

  SameBits made;
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), 0);
  for (std::int64_t round = 0; round < rounds; ++round) {
    const auto form = static_cast<std::size_t>(round % 8);
    for (std::size_t i = order.size(); i > 1; --i) {
      std::swap(order[i - 1], order[random.below(static_cast<std::uint32_t>(i))]);
    }
    for (std::size_t begin = 0; begin < order.size();) {
      const std::size_t end = std::min(order.size(), begin + 1 + random.below(kMaxTogether));
      std::vector<Request> together;
      for (std::size_t i = begin; i < end; ++i) together.push_back(all[order[i]]);
      const Placing placing = {.heads_first = random.below(2) == 0,
                               .together = random.below(2) == 0,
                               .listed = form / 4 == 1,
                               .own_tables = random.below(2) == 0,
                               .seed = random.below(1 << 20)};
      const auto answers = run(device, plans[form % 4], together, placing);
      for (std::size_t i = begin; i < end; ++i) {
        ++made.answers;
        if (answers[i - begin] == alone[order[i]]) continue;
        if (made.differing++ > 0) continue;
        const Request& request = all[order[i]];
        made.first = fmt::format(
            "request {} of {} queries and {} keys, {} of {} together in pages of {}, {}", order[i],
            request.queries, request.keys, i - begin, end - begin, kPageRows[form % 4],
            placing.listed ? "listed" : "in a table");
      }
      begin = end;
    }
  }
  return made;
}

}  // namespace annulus::test
