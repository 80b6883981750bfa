#include "batch/batch_case.h"

#include <doctest/doctest.h>
#include <fmt/core.h>

#include "support/device.h"

namespace annulus::test {

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
