#ifndef ANNULUS_PLANNER_TUNED_BATCH_H_
#define ANNULUS_PLANNER_TUNED_BATCH_H_

// The tuned configurations of a batch's kernels.

#include <string>
#include <vector>

#include "annulus/batch.h"
#include "attention/kernels/device_limits.h"
#include "autotune/store.h"

namespace annulus::planner {

struct TunedBatch {
  BatchOptions options;                            // the caller's, with the tuned configurations
  std::vector<autotune::TunedStore::Found> found;  // that they come from; empty: there are none
  std::string origins;                             // of them, in their order: "memory, /home/..."
};

// Looks up each class of requests for which the caller names no configuration. Requires:
// validate(problem) passes. Throws as batch::named_configs does.
TunedBatch tuned_batch(const BatchProblem& problem, const BatchOptions& options,
                       const attention::DeviceLimits& limits, autotune::TunedStore& tuned);

}  // namespace annulus::planner

#endif  // ANNULUS_PLANNER_TUNED_BATCH_H_
