#ifndef ANNULUS_PLANNER_FIT_H_
#define ANNULUS_PLANNER_FIT_H_

// Plans that need no more workspace than a caller has. The steps, in this order, are those that
// PlanOptions::max_workspace_bytes documents; each is a line of PlanInfo::decisions.

#include <cstdint>
#include <string>
#include <vector>

#include "annulus/device.h"
#include "attention/run/branched_forward.h"

namespace annulus::planner {

struct FittedPlans {
  std::vector<attention::LaunchPlan> plans;
  std::vector<std::string> steps;
};

// Throws as make_branch_plans, and Error{kOutOfMemory} where no step helps.
FittedPlans make_fitting_plans(const Problem& problem, const attention::Choice& choice,
                               const attention::DeviceLimits& limits, attention::PlanForm form,
                               std::int64_t max_workspace_bytes, attention::TileCache* cache);

// Throws Error{kOutOfMemory} where more workspace is needed than the options allow.
void require_workspace(std::int64_t bytes, const PlanOptions& options);

// The parts of the longest tile row that any of the plans splits; 1: none splits rows.
std::int64_t parts_of(const std::vector<attention::LaunchPlan>& plans);

}  // namespace annulus::planner

#endif  // ANNULUS_PLANNER_FIT_H_
