#ifndef ANNULUS_TUNED_BATCH_TARGET_H_
#define ANNULUS_TUNED_BATCH_TARGET_H_

#include <vector>

#include "annulus/batch.h"
#include "batch/batch_config.h"
#include "batch/batch_cost.h"

namespace annulus::tuned {

// A class of a batch's requests, for which the best kernel is searched.
struct BatchTarget {
  BatchProblem problem;  // the bounds are set
  BatchOptions options;  // uses part_keys and max_multiprocessors; names no config
  batch::RequestClass requests = batch::RequestClass::kFewQueries;
  // The requests that are measured: the requests of this class in a step, with their keys on all
  // ranks together. They are within the bounds. There is at least one request, and each has at
  // least one query and one key.
  std::vector<batch::StepRequest> step;
};

}  // namespace annulus::tuned

#endif  // ANNULUS_TUNED_BATCH_TARGET_H_
