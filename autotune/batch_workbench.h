#ifndef ANNULUS_AUTOTUNE_BATCH_WORKBENCH_H_
#define ANNULUS_AUTOTUNE_BATCH_WORKBENCH_H_

// Tries candidates for a class of a batch's requests. A candidate's answers for a small step are
// verified (batch_verify.h); then a real device measures run() on the target's step, with prepare()
// called once before, and a simulated one predicts it (batch_prediction.h).

#include <memory>

#include "autotune/batch_prediction.h"
#include "autotune/workbench.h"

namespace annulus::autotune {

// Makes operands from `seed`, on a real device those of the whole step, and the oracle's answers on
// so many `threads`; 0: one per processor. `compilers` threads compile what is foreseen. `kernels`
// must outlive it. Candidates are those that batch::why_not has nothing against for the target's
// class. Requires: validate(target.problem) passes; a simulated device is in checked mode. Throws
// Error{kUnsupported} for a step with more keys than metadata can say, and Error{kOutOfMemory,
// kDevice, kFault, kCancelled}.
std::unique_ptr<Workbench> batch_workbench(device::ContextPointer context,
                                           jit::KernelCache& kernels,
                                           attention::DeviceLimits limits,
                                           const tuned::BatchTarget& target, std::uint64_t seed,
                                           int threads, int compilers);

// The same for a device that is measured, whatever it is.
std::unique_ptr<Workbench> measured_batch_workbench(device::ContextPointer context,
                                                    jit::KernelCache& kernels,
                                                    attention::DeviceLimits limits,
                                                    const tuned::BatchTarget& target,
                                                    std::uint64_t seed, int threads, int compilers,
                                                    const MeasureOptions& options = {});

}  // namespace annulus::autotune

#endif  // ANNULUS_AUTOTUNE_BATCH_WORKBENCH_H_
