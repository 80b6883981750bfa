#include "batch/batch_case.h"

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <utility>

#include "base/math.h"
#include "pattern/evaluate.h"
#include "support/device.h"

namespace annulus::test {
namespace {

// The keys of a request that some query sees, by their numbers among the keys of the rank. If they
// are more than three runs, all keys between the first and the last count, because kernels read
// their pages.
pattern::IntervalSet seen_keys(const BatchProblem& problem, const Request& request) {
  pattern::Evaluator evaluator(problem.pattern, {});
  const pattern::Interval keys = {request.position, request.position + request.keys};
  pattern::IntervalSet seen, more;
  for (std::int64_t h = 0; h < problem.pattern.distinct_heads(problem.heads); ++h) {
    for (std::int64_t q = keys.end - request.queries; q < keys.end; ++q) {
      pattern::unite(seen, evaluator.row(h, q, keys), &more);
      std::swap(seen, more);
    }
  }
  if (seen.size() > 3) seen = {{seen.front().begin, seen.back().end}};
  for (pattern::Interval& run : seen) {
    run.begin = held_keys(problem.interleave, run.begin - request.position);
    run.end = held_keys(problem.interleave, run.end - request.position);
  }
  std::erase_if(seen, [](const pattern::Interval& run) { return run.begin == run.end; });
  return seen;
}

}  // namespace

const Device& device() {
  static const Device opened = Device::open(device_name());
  return opened;
}

BatchProblem problem_for(const std::vector<Request>& requests, std::int64_t heads) {
  BatchProblem problem;
  problem.heads = heads;
  problem.kv_heads = 2;
  problem.dim_qk = problem.dim_v = 64;
  problem.pattern = causal();
  problem.page_rows = 16;
  problem.want_lse = true;
  problem.most = bounds_of(requests);
  return problem;
}

BatchOptions in_parts() {
  BatchOptions options;
  options.part_keys = 128;
  return options;
}

std::vector<Answer> BatchCase::answers() const {
  bool untouched = false;
  std::vector<Answer> answers = BatchStep::answers(&untouched);
  CHECK(untouched);
  return answers;
}

void lose_unseen_pages(const BatchCase& step, const BatchProblem& problem,
                       const std::vector<Request>& requests) {
  constexpr std::int32_t kNone = -1;
  for (const PageTable& table : {step.metadata().k_pages, step.metadata().v_pages}) {
    if (table.ids == nullptr) continue;
    std::vector<std::int32_t> begin(requests.size());
    for (std::size_t r = 0; r < requests.size(); ++r) {
      begin[r] = static_cast<std::int32_t>(static_cast<std::int64_t>(r) * table.width);
    }
    if (table.begin != nullptr) {
      device().copy_to_host(begin.data(), table.begin, begin.size() * sizeof(begin[0]));
    }
    for (std::size_t r = 0; r < requests.size(); ++r) {
      const pattern::IntervalSet seen = seen_keys(problem, requests[r]);
      const std::int64_t held = held_keys(problem.interleave, requests[r].keys);
      const std::int64_t pages = base::ceil_div(held, problem.page_rows);
      for (std::int64_t page = 0; page < pages; ++page) {
        const std::int64_t first = page * problem.page_rows;
        if (pattern::touches(seen, {first, first + problem.page_rows})) continue;
        device().copy_to_device(const_cast<std::int32_t*>(table.ids) + begin[r] + page, &kNone,
                                sizeof(kNone));
      }
    }
  }
}

std::string first_wrong(const BatchProblem& problem, const std::vector<Request>& requests,
                        const std::vector<Answer>& answers) {
  REQUIRE(answers.size() == requests.size());
  for (std::size_t r = 0; r < requests.size(); ++r) {
    const Request& request = requests[r];
    if (request.queries == 0) continue;
    const Reference expected = program::reference(
        problem, request, program::tensors_of(problem, request), {}, static_cast<std::int64_t>(r));
    const Comparison made = program::compare(problem, request, expected, answers[r]);
    if (made.within_tolerance && made.checked_rows == problem.heads * request.queries) continue;
    return fmt::format(
        "request {} of {} queries, {} keys: row {} head {} LSE {} in {} of {} rows: {}", r,
        request.queries, request.keys, made.error_row_max, made.error_o, made.error_lse,
        made.wrong_rows, made.checked_rows, made.first_wrong);
  }
  return {};
}

void check_answers(const BatchProblem& problem, const std::vector<Request>& requests,
                   const std::vector<Answer>& answers, const std::string& what) {
  const std::string wrong = first_wrong(problem, requests, answers);
  if (!wrong.empty()) FAIL_CHECK(what << "\n  " << wrong);
}

}  // namespace annulus::test
