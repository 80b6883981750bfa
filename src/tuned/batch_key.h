#ifndef ANNULUS_TUNED_BATCH_KEY_H_
#define ANNULUS_TUNED_BATCH_KEY_H_

// The keys under which results for batches of requests are kept: one for each class of requests,
// from the bounds of the batch alone, which is all that a plan knows.

#include <vector>

#include "annulus/batch.h"
#include "annulus/tune.h"
#include "batch/batch_config.h"
#include "batch/batch_cost.h"
#include "tuned/shape_key.h"

namespace annulus::tuned {

// The classes of requests that are within the bounds. Requires: validate(problem) passes, here and
// below.
std::vector<batch::RequestClass> classes_within(const BatchProblem& problem);

// The requests of a step that are of a class. Throws Error{kInvalidArgument} where the step is not
// within the bounds.
std::vector<batch::StepRequest> requests_of(const std::vector<StepRequests>& step,
                                            const BatchProblem& problem,
                                            batch::RequestClass requests);

// All requests as one problem whose batches they are: each has the most queries of its class, and
// its share of all keys.
Problem as_problem(const BatchProblem& problem, batch::RequestClass requests);

// That problem's key, with what batches have besides. Requires: the class is within the bounds.
ShapeKey shape_key(const BatchProblem& problem, batch::RequestClass requests);

}  // namespace annulus::tuned

#endif  // ANNULUS_TUNED_BATCH_KEY_H_
