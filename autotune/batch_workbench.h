#ifndef ANNULUS_AUTOTUNE_BATCH_WORKBENCH_H_
#define ANNULUS_AUTOTUNE_BATCH_WORKBENCH_H_

// Tries candidates for a class of a batch's requests. A candidate's results for a small step are
// verified (batch_verify.h). Then a real device measures run() for the target's step, after one
// call of prepare(). A simulated device predicts the time (batch_prediction.h).

#include <memory>

#include "autotune/batch_prediction.h"
#include "autotune/workbench.h"

namespace annulus::autotune {

// Creates operands from `seed`; on a real device they are operands of the whole step. Computes the
// oracle's results on `threads` threads, or on one for each processor if that is 0. `compilers`
// threads compile the foreseen candidates. `kernels` must outlive the workbench. Candidates are the
// configurations that batch::why_not allows for the target's class. Requires:
// validate(target.problem) passes; a simulated device is in checked mode. Throws
// Error{kUnsupported} for a step with more keys than the metadata can address, and
// Error{kOutOfMemory, kDevice, kFault, kCancelled}.
std::unique_ptr<Workbench> batch_workbench(device::ContextPointer context,
                                           jit::KernelCache& kernels,
                                           attention::DeviceLimits limits,
                                           const tuned::BatchTarget& target, std::uint64_t seed,
                                           int threads, int compilers);

// Does the same, and measures on any device, also on a simulated one.
std::unique_ptr<Workbench> measured_batch_workbench(device::ContextPointer context,
                                                    jit::KernelCache& kernels,
                                                    attention::DeviceLimits limits,
                                                    const tuned::BatchTarget& target,
                                                    std::uint64_t seed, int threads, int compilers,
                                                    const MeasureOptions& options = {});

}  // namespace annulus::autotune

#endif  // ANNULUS_AUTOTUNE_BATCH_WORKBENCH_H_
