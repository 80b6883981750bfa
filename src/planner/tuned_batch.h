#ifndef ANNULUS_PLANNER_TUNED_BATCH_H_
#define ANNULUS_PLANNER_TUNED_BATCH_H_

// Looks up the tuned configurations for the kernels of a batch.

#include <optional>
#include <string>
#include <vector>

#include "annulus/batch.h"
#include "attention/kernels/device_limits.h"
#include "batch/batch_config.h"
#include "tuned/store.h"

namespace annulus::planner {

// The lookup for one class of a batch's requests.
struct TunedClass {
  batch::RequestClass requests = batch::RequestClass::kFewQueries;
  std::optional<tuned::TunedStore::Found> found;  // the nearest result
  // the reason why `found` is not used; empty if it is used, or if there is none
  std::string why_unused;
};

// Each class that is within the bounds of the problem. Requires: validate(problem) passes. Throws
// as batch::named_configs does.
std::vector<TunedClass> tuned_classes(const BatchProblem& problem, const BatchOptions& options,
                                      const attention::DeviceLimits& limits,
                                      tuned::TunedStore& tuned);

struct TunedBatch {
  BatchOptions options;  // the caller's options with the tuned configurations
  std::vector<tuned::TunedStore::Found> found;  // the results that they come from; may be empty
  std::string origins;  // the origins of these results, in their order: "memory, /home/..."
};

// Looks up a result for each class of requests for which the caller names no configuration.
// Requires: validate(problem) passes. Throws as batch::named_configs does.
TunedBatch tuned_batch(const BatchProblem& problem, const BatchOptions& options,
                       const attention::DeviceLimits& limits, tuned::TunedStore& tuned);

}  // namespace annulus::planner

#endif  // ANNULUS_PLANNER_TUNED_BATCH_H_
