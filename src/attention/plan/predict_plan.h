#ifndef ANNULUS_ATTENTION_PLAN_PREDICT_PLAN_H_
#define ANNULUS_ATTENTION_PLAN_PREDICT_PLAN_H_

// The pipe model's questions, asked of a whole plan.

#include "attention/cost/pipe_model.h"
#include "attention/plan/plan.h"

namespace annulus::attention {

// The tiles of a plan's rows, whether they are split or not.
TileCounts count_tiles(const LaunchPlan& plan);

// How long a plan's launches would take, from nothing but the plan: those that combine the parts
// of split rows are included.
Prediction predict(const PipeDevice& device, const LaunchPlan& plan);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_PLAN_PREDICT_PLAN_H_
