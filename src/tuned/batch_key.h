#ifndef ANNULUS_TUNED_BATCH_KEY_H_
#define ANNULUS_TUNED_BATCH_KEY_H_

// The keys under which tuned results for batches of requests are stored: one for each class of
// requests. A key depends only on the bounds of the batch, because a plan has only the bounds.

#include <vector>

#include "annulus/batch.h"
#include "annulus/tune.h"
#include "batch/batch_config.h"
#include "batch/batch_cost.h"
#include "tuned/shape_key.h"

namespace annulus::tuned {

// The classes of requests that are within the bounds. Requires, as all functions below:
// validate(problem) passes.
std::vector<batch::RequestClass> classes_within(const BatchProblem& problem);

// The requests of a step that belong to a class. Throws Error{kInvalidArgument} if the step is not
// within the bounds.
std::vector<batch::StepRequest> requests_of(const std::vector<StepRequests>& step,
                                            const BatchProblem& problem,
                                            batch::RequestClass requests);

// The requests as one problem, in which each request is a batch. Each request has the largest
// number of queries of its class and an equal share of all keys.
Problem as_problem(const BatchProblem& problem, batch::RequestClass requests);

// The key of that problem, with the properties that only batches have. Requires: the class is
// within the bounds.
ShapeKey shape_key(const BatchProblem& problem, batch::RequestClass requests);

}  // namespace annulus::tuned

#endif  // ANNULUS_TUNED_BATCH_KEY_H_
