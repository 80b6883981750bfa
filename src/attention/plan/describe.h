#ifndef ANNULUS_ATTENTION_PLAN_DESCRIBE_H_
#define ANNULUS_ATTENTION_PLAN_DESCRIBE_H_

// Describes the decisions of a plan in sentences.

#include <string>
#include <vector>

#include "attention/plan/plan.h"

namespace annulus::attention {

// One line for each decision, for people to read.
std::vector<std::string> describe(const LaunchPlan& plan, const DeviceLimits& limits);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_PLAN_DESCRIBE_H_
