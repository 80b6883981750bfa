#include "tuned/batch_key.h"

#include <algorithm>

#include "base/fail.h"
#include "batch/batch_plan.h"

namespace annulus::tuned {

using batch::RequestClass;

std::vector<RequestClass> classes_within(const BatchProblem& problem) {
  const BatchProblem bounded = batch::with_bounds(problem);
  std::vector<RequestClass> classes = {RequestClass::kFewQueries};
  if (bounded.most.rows_of_one > batch::most_few_queries(bounded)) {
    classes.push_back(RequestClass::kManyQueries);
  }
  return classes;
}

std::vector<batch::StepRequest> requests_of(const std::vector<StepRequests>& step,
                                            const BatchProblem& problem, RequestClass requests) {
  const BatchProblem bounded = batch::with_bounds(problem);
  const BatchBounds& most = bounded.most;
  const std::int64_t few = batch::most_few_queries(bounded);
  std::vector<batch::StepRequest> all;
  std::int64_t count = 0, rows = 0, keys = 0;
  for (const StepRequests& each : step) {
    const bool fits = each.requests >= 1 && each.requests <= most.requests - count &&
                      each.queries >= 1 && each.queries <= most.rows_of_one && each.keys >= 1 &&
                      each.keys <= most.keys_of_one &&
                      each.requests <= (most.rows - rows) / each.queries &&
                      each.requests <= (most.keys - keys) / each.keys;
    if (!fits) {
      base::fail(
          ErrorCode::kInvalidArgument,
          "{} requests of {} queries and {} keys of the step are not within the bounds, or "
          "with those before them not: up to {} requests, {} queries, {} of one, {} keys, {} "
          "of one",
          each.requests, each.queries, each.keys, most.requests, most.rows, most.rows_of_one,
          most.keys, most.keys_of_one);
    }
    count += each.requests;
    rows += each.requests * each.queries;
    keys += each.requests * each.keys;
    const bool is_few = each.queries <= few;
    if (is_few != (requests == RequestClass::kFewQueries)) continue;
    all.insert(all.end(), static_cast<std::size_t>(each.requests), {each.queries, each.keys});
  }
  return all;
}

Problem as_problem(const BatchProblem& problem, RequestClass requests) {
  const BatchProblem bounded = batch::with_bounds(problem);
  const BatchBounds& most = bounded.most;
  Problem all = batch::largest_request(bounded);
  all.batch = most.requests;
  if (requests == RequestClass::kFewQueries) all.seq_q = batch::most_few_queries(bounded);
  all.seq_k = std::clamp<std::int64_t>(most.keys / most.requests, 1, most.keys_of_one);
  return all;
}

ShapeKey shape_key(const BatchProblem& problem, RequestClass requests) {
  ShapeKey key = shape_key(as_problem(problem, requests));
  key.requests =
      requests == RequestClass::kFewQueries ? Requests::kFewQueries : Requests::kManyQueries;
  key.pages = batch::pages_of(problem);
  key.block_columns = static_cast<int>(problem.block_keys);
  return key;
}

}  // namespace annulus::tuned
