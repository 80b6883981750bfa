#ifndef ANNULUS_AUTOTUNE_BATCH_PREDICTION_H_
#define ANNULUS_AUTOTUNE_BATCH_PREDICTION_H_

// Predicts the time of a batch's step with a configuration. For few queries there is a model,
// batch::predict_step. For many queries there is none. Their prediction is the least time in which
// the device's pipes could do the work, which is determined by the slowest pipe. It is a bound of
// throughput without dependencies, so the numbers of stages and resident CTAs do not change it.

#include "attention/cost/pipe_model.h"
#include "autotune/batch_operands.h"

namespace annulus::autotune {

// The cycles that the target's step is predicted to take, before any kernel runs. The result is
// deterministic. Throws as batch::make_plan does.
double predicted_cycles(const attention::PipeDevice& pipes, const attention::DeviceLimits& limits,
                        const tuned::BatchTarget& target, const attention::KernelConfig& config);

// Does the same after a simulated device has counted the work of the configuration on the requests
// `small` of a batch `small_problem`. For many queries, the estimated work is multiplied by the
// ratio of counted to estimated work of `small`.
double predicted_cycles(const attention::PipeDevice& pipes, const attention::DeviceLimits& limits,
                        const tuned::BatchTarget& target, const attention::KernelConfig& config,
                        const attention::KernelWork& counted, const BatchProblem& small_problem,
                        const std::vector<batch::StepRequest>& small);

}  // namespace annulus::autotune

#endif  // ANNULUS_AUTOTUNE_BATCH_PREDICTION_H_
