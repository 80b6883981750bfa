#ifndef ANNULUS_PLANNER_DESCRIBE_H_
#define ANNULUS_PLANNER_DESCRIBE_H_

// Describes plans and rings for people and logs. PlanInfo and RingInfo are filled in only here,
// from the launches themselves, so that the kernel that is named is the kernel that runs.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "annulus/ring.h"
#include "attention/cost/pipe_model.h"
#include "attention/run/branched_forward.h"
#include "ring/plan.h"

namespace annulus::planner {

// The plans of a problem, one for each branch; at least one.
using BranchPlans = std::vector<const attention::LaunchPlan*>;
BranchPlans plans_of(const attention::BranchedForward& forward);

// Fills in all fields that follow from the plans alone. That excludes tuned, plan_ms and
// compile_ms, and the fields that need the compiled kernel: source, registers, local_bytes and
// blocks_per_multiprocessor. Throws Error{kInvalidArgument} if blocks of the size
// PlanOptions::block_rows x block_columns cannot be counted.
PlanInfo describe(const BranchPlans& plans, const PlanOptions& options);

// Fills in the same fields and those that need the compiled kernel.
PlanInfo describe(const attention::BranchedForward& forward, const PlanOptions& options);

// The device of a rank: its name, and the properties that the pipe model uses.
struct RankOfRing {
  std::string device;
  device::DeviceInfo info;
  jit::Arch arch;
};

// Fills in all fields except tuned, plan_ms, compile_ms and the ranks' device_bytes.
RingInfo describe(const ring::PlannedRing& plan, std::span<const RankOfRing> ranks);

// Describes one rank. RingInfo::ranks and the schedule contain only this rank.
RingInfo describe(const ring::World& world, const attention::Choice& choice,
                  const ring::RankPlan& plan, const RankOfRing& on);

// The number of tiles of each launch: [rank][launch]. Must be called before a LocalRing takes the
// launches out of the plan.
std::vector<std::vector<std::int64_t>> count_tiles(const ring::PlannedRing& plan);

// The predicted time of a run on the device. The branches run one after another.
PlanPrediction predict(const BranchPlans& plans, const device::DeviceInfo& device);

}  // namespace annulus::planner

#endif  // ANNULUS_PLANNER_DESCRIBE_H_
