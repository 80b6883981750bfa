#ifndef ANNULUS_PLANNER_DESCRIBE_H_
#define ANNULUS_PLANNER_DESCRIBE_H_

// Describes plans and rings for people and for logs. PlanInfo and RingInfo are made only here, from
// the launches themselves, so that the kernel that is named is the one that runs.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "annulus/ring.h"
#include "attention/cost/pipe_model.h"
#include "attention/run/branched_forward.h"
#include "ring/plan.h"

namespace annulus::planner {

// The plans of a problem, one for each branch. At least one.
using BranchPlans = std::vector<const attention::LaunchPlan*>;
BranchPlans plans_of(const attention::BranchedForward& forward);

// Fills in all fields that follow from the plans alone: not tuned, plan_ms and compile_ms, and not
// source, registers, local_bytes and blocks_per_multiprocessor, which need the compiled kernel.
// Throws Error{kInvalidArgument} for blocks that PlanOptions::block_rows and block_columns cannot
// count.
PlanInfo describe(const BranchPlans& plans, const PlanOptions& options);

// Fills in the fields that need the compiled kernel as well.
PlanInfo describe(const attention::BranchedForward& forward, const PlanOptions& options);

// The device of a rank: what it is called, and what the pipe model takes it for.
struct RankOfRing {
  std::string device;
  device::DeviceInfo info;
  jit::Arch arch;
};

// Fills in all fields but tuned, plan_ms, compile_ms and the ranks' device_bytes.
RingInfo describe(const ring::PlannedRing& plan, std::span<const RankOfRing> ranks);

// One rank alone, which is the only one of RingInfo::ranks and of its schedule.
RingInfo describe(const ring::World& world, const attention::Choice& choice,
                  const ring::RankPlan& plan, const RankOfRing& on);

// The number of tiles of each launch: [rank][launch]. Count before a LocalRing takes the launches.
std::vector<std::vector<std::int64_t>> count_tiles(const ring::PlannedRing& plan);

// The predicted time of a run on such a device. The branches run one after another.
PlanPrediction predict(const BranchPlans& plans, const device::DeviceInfo& device);

}  // namespace annulus::planner

#endif  // ANNULUS_PLANNER_DESCRIBE_H_
