#ifndef ANNULUS_TUNED_BATCH_TARGET_H_
#define ANNULUS_TUNED_BATCH_TARGET_H_

#include <vector>

#include "annulus/batch.h"
#include "batch/batch_config.h"
#include "batch/batch_cost.h"

namespace annulus::tuned {

// A class of a batch's requests whose kernel is searched.
struct BatchTarget {
  BatchProblem problem;  // bounds and all
  BatchOptions options;  // part_keys, max_multiprocessors; no config
  batch::RequestClass requests = batch::RequestClass::kFewQueries;
  // What is measured: the requests of this class in a step, with the keys that they have on all
  // ranks together. Within the bounds, at least one, each with a query and a key or more.
  std::vector<batch::StepRequest> step;
};

}  // namespace annulus::tuned

#endif  // ANNULUS_TUNED_BATCH_TARGET_H_
