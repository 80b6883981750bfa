#ifndef ANNULUS_ATTENTION_PLAN_PREDICT_PLAN_H_
#define ANNULUS_ATTENTION_PLAN_PREDICT_PLAN_H_

// Applies the pipe model to a whole plan.

#include "attention/cost/pipe_model.h"
#include "attention/plan/plan.h"

namespace annulus::attention {

// The counts of a plan's whole tile rows, even if the plan splits them.
TileCounts count_tiles(const LaunchPlan& plan);

// Predicts the time of a plan's launches from the plan alone, including the launches that combine
// the parts of split rows.
Prediction predict(const PipeDevice& device, const LaunchPlan& plan);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_PLAN_PREDICT_PLAN_H_
