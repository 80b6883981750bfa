#include "autotune/batch_key.h"

#include <algorithm>

#include "batch/batch_plan.h"

namespace annulus::autotune {

using batch::RequestClass;

std::vector<RequestClass> classes_within(const BatchProblem& problem) {
  const BatchProblem bounded = batch::with_bounds(problem);
  std::vector<RequestClass> classes = {RequestClass::kFewQueries};
  if (bounded.most.rows_of_one > batch::most_few_queries(bounded)) {
    classes.push_back(RequestClass::kManyQueries);
  }
  return classes;
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

}  // namespace annulus::autotune
