#ifndef ANNULUS_PLANNER_FIT_H_
#define ANNULUS_PLANNER_FIT_H_

// Plans that need no more workspace than the caller has. PlanOptions::max_workspace_bytes documents
// the steps and their order. Each step adds a line to PlanInfo::decisions.

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

// Throws as make_branch_plans does, and Error{kOutOfMemory} if no step suffices.
FittedPlans make_fitting_plans(const Problem& problem, const attention::Choice& choice,
                               const attention::DeviceLimits& limits, attention::PlanForm form,
                               std::int64_t max_workspace_bytes, attention::TileCache* cache);

// Throws Error{kOutOfMemory} if more workspace is needed than the options allow.
void require_workspace(std::int64_t bytes, const PlanOptions& options);

// The number of parts of the longest tile row in any of the plans. 1 means that no row is split.
std::int64_t parts_of(const std::vector<attention::LaunchPlan>& plans);

}  // namespace annulus::planner

#endif  // ANNULUS_PLANNER_FIT_H_
