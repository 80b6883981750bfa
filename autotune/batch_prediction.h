#ifndef ANNULUS_AUTOTUNE_BATCH_PREDICTION_H_
#define ANNULUS_AUTOTUNE_BATCH_PREDICTION_H_

// How long a step of a batch would take with a configuration, on paper. Few queries have a model of
// their own, batch::predict_step. Many queries have none: what is said of them is the least time in
// which the pipes of the device could do the work, the slowest pipe deciding. That is a bound of
// throughput, which knows nothing of what waits for what, so that stages and resident CTAs make no
// difference to it.

#include "attention/cost/pipe_model.h"
#include "autotune/batch_operands.h"

namespace annulus::autotune {

// Cycles that the target's step is predicted to take, before anything runs. The same arguments have
// the same answer. Throws as batch::make_plan does.
double predicted_cycles(const attention::PipeDevice& pipes, const attention::DeviceLimits& limits,
                        const tuned::BatchTarget& target, const attention::KernelConfig& config);

// The same once a simulated device has counted the work of the configuration on the requests
// `small` of a batch `small_problem`: for many queries all work is corrected by the ratio of
// counted to estimated work there.
double predicted_cycles(const attention::PipeDevice& pipes, const attention::DeviceLimits& limits,
                        const tuned::BatchTarget& target, const attention::KernelConfig& config,
                        const attention::KernelWork& counted, const BatchProblem& small_problem,
                        const std::vector<batch::StepRequest>& small);

}  // namespace annulus::autotune

#endif  // ANNULUS_AUTOTUNE_BATCH_PREDICTION_H_
