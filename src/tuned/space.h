#ifndef ANNULUS_TUNED_SPACE_H_
#define ANNULUS_TUNED_SPACE_H_

// The search space: every configuration of any family that is legal for a device, for the head dims
// and the dtype of Q, K and V. Configurations that do not ship are included. A tuned entry names a
// point of this space.

#include <optional>
#include <string>
#include <vector>

#include "annulus/batch.h"
#include "attention/cost/pipe_model.h"
#include "attention/plan/plan.h"
#include "batch/batch_config.h"
#include "tuned/shape_key.h"

namespace annulus::tuned {

// The reason why a configuration is not in the space, as a sentence. No value if it is in the
// space. Checks attention::why_not, and whether the registers of each thread can hold the scores
// and the output with the requested number of resident CTAs.
std::optional<std::string> why_outside(const attention::KernelConfig& config,
                                       const attention::Dims& dims, Dtype dtype,
                                       const attention::DeviceLimits& limits);

// Does the same for the subject of an entry's key: a problem, or a class of requests.
std::optional<std::string> why_outside(const attention::KernelConfig& config, const ShapeKey& shape,
                                       const attention::DeviceLimits& limits);

struct Space {
  std::vector<attention::KernelConfig> candidates;  // sorted in the fixed order that decides ties
  // The number of configurations that are left out because an equivalent candidate exists: they
  // request fewer resident CTAs, but ptxas would not get more registers.
  int equal = 0;
};

// Enumerates the space without withheld configurations (why_withheld). Candidates differ in the
// number of CTAs that they request to be resident. On a real device there is one candidate for each
// number of registers that ptxas may use, with the most CTAs that allow this number and fit in
// shared memory. On a simulated device there is only the candidate with the most CTAs, because a
// prediction finds no advantage in fewer. Candidates that may spill are left out there, because the
// prediction does not model spills.
Space enumerate(const attention::Dims& dims, Dtype dtype, const attention::DeviceLimits& limits,
                const attention::PipeDevice& pipes, bool simulated);

// Does the same for a class of a batch's requests, with pages of any size.
Space enumerate(const BatchProblem& problem, batch::RequestClass requests,
                const attention::DeviceLimits& limits, const attention::PipeDevice& pipes,
                bool simulated);

}  // namespace annulus::tuned

#endif  // ANNULUS_TUNED_SPACE_H_
