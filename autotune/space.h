#ifndef ANNULUS_AUTOTUNE_SPACE_H_
#define ANNULUS_AUTOTUNE_SPACE_H_

// The declared search space: every configuration of any family that is legal for the head dims and
// the dtype of Q, K and V on a device, whether it ships or not. A tuned entry names a point of it
// and nothing else.

#include <optional>
#include <string>
#include <vector>

#include "attention/cost/pipe_model.h"
#include "attention/plan/plan.h"

namespace annulus::autotune {

// A sentence that says why a configuration is not in the space, or nothing where it is: what
// attention::why_not says, and that the registers of the CTAs it asks for hold its scores and
// output.
std::optional<std::string> why_outside(const attention::KernelConfig& config,
                                       const attention::Dims& dims, Dtype dtype,
                                       const attention::DeviceLimits& limits);

struct Space {
  std::vector<attention::KernelConfig> candidates;  // in the fixed order that settles ties
  // Looked at and left out because a candidate stands for them: they ask for fewer resident CTAs
  // and give ptxas no more registers.
  int equal = 0;
};

// How many CTAs a candidate asks to be resident: on a real device each number that changes what
// ptxas may use, the largest that shared memory has room for; on a simulated one the largest that
// fits, because a prediction knows no reason to want fewer.
Space enumerate(const attention::Dims& dims, Dtype dtype, const attention::DeviceLimits& limits,
                const attention::PipeDevice& pipes, bool simulated);

}  // namespace annulus::autotune

#endif  // ANNULUS_AUTOTUNE_SPACE_H_
