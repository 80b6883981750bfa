#ifndef ANNULUS_TUNED_SPACE_H_
#define ANNULUS_TUNED_SPACE_H_

// The declared search space: every configuration of any family that is legal for the head dims and
// the dtype of Q, K and V on a device, whether it ships or not. A tuned entry names a point of this
// space and nothing else.

#include <optional>
#include <string>
#include <vector>

#include "annulus/batch.h"
#include "attention/cost/pipe_model.h"
#include "attention/plan/plan.h"
#include "batch/batch_config.h"
#include "tuned/shape_key.h"

namespace annulus::tuned {

// A sentence that says why a configuration is not in the space, empty where it is. It asks
// attention::why_not, and whether the registers that are left to the CTAs it wants resident hold
// its scores and output.
std::optional<std::string> why_outside(const attention::KernelConfig& config,
                                       const attention::Dims& dims, Dtype dtype,
                                       const attention::DeviceLimits& limits);

// The same for what an entry's key is of: a problem, or a class of requests.
std::optional<std::string> why_outside(const attention::KernelConfig& config, const ShapeKey& shape,
                                       const attention::DeviceLimits& limits);

struct Space {
  std::vector<attention::KernelConfig> candidates;  // in the fixed order that settles ties
  // How many configurations are left out because a candidate stands for them: they ask for fewer
  // resident CTAs, but that gives ptxas no more registers.
  int equal = 0;
};

// Enumerates the space without what is withheld (why_withheld). Candidates differ in the number of
// CTAs that they want resident: on a real device there is one for each number of registers that
// ptxas may use, with the most CTAs that allow it and that shared memory has room for. On a
// simulated device there is only the one with the most CTAs, because a prediction knows no reason
// for fewer, and none that may spill, because it does not know what that costs.
Space enumerate(const attention::Dims& dims, Dtype dtype, const attention::DeviceLimits& limits,
                const attention::PipeDevice& pipes, bool simulated);

// The same for a class of a batch's requests, whatever its pages are.
Space enumerate(const BatchProblem& problem, batch::RequestClass requests,
                const attention::DeviceLimits& limits, const attention::PipeDevice& pipes,
                bool simulated);

}  // namespace annulus::tuned

#endif  // ANNULUS_TUNED_SPACE_H_
