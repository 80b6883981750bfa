#ifndef ANNULUS_PLANNER_TUNED_BATCH_H_
#define ANNULUS_PLANNER_TUNED_BATCH_H_

// The tuned configurations of a batch's kernels.

#include <optional>
#include <string>
#include <vector>

#include "annulus/batch.h"
#include "attention/kernels/device_limits.h"
#include "batch/batch_config.h"
#include "tuned/store.h"

namespace annulus::planner {

// What is looked up for a class of a batch's requests.
struct TunedClass {
  batch::RequestClass requests = batch::RequestClass::kFewQueries;
  std::optional<tuned::TunedStore::Found> found;  // the result that comes nearest
  std::string why_unused;  // it is not taken for this; empty: it is, where there is one
};

// Each class that is within the bounds. Requires: validate(problem) passes. Throws as
// batch::named_configs does.
std::vector<TunedClass> tuned_classes(const BatchProblem& problem, const BatchOptions& options,
                                      const attention::DeviceLimits& limits,
                                      tuned::TunedStore& tuned);

struct TunedBatch {
  BatchOptions options;                         // the caller's, with the tuned configurations
  std::vector<tuned::TunedStore::Found> found;  // that they come from; empty: there are none
  std::string origins;                          // of them, in their order: "memory, /home/..."
};

// Looks up each class of requests for which the caller names no configuration. Requires:
// validate(problem) passes. Throws as batch::named_configs does.
TunedBatch tuned_batch(const BatchProblem& problem, const BatchOptions& options,
                       const attention::DeviceLimits& limits, tuned::TunedStore& tuned);

}  // namespace annulus::planner

#endif  // ANNULUS_PLANNER_TUNED_BATCH_H_
