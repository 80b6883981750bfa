#ifndef ANNULUS_PLANNER_DESCRIBE_H_
#define ANNULUS_PLANNER_DESCRIBE_H_

// What is told of a plan or a ring, for people and for logs: the one place where PlanInfo and
// RingInfo are made, so that the kernel that is named is the one that the configuration runs.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "annulus/ring.h"
#include "attention/run/branched_forward.h"
#include "ring/plan.h"

namespace annulus::planner {

// All but tuned, plan_ms and compile_ms. Throws Error{kInvalidArgument} for blocks that
// PlanOptions::block_rows and block_columns cannot count.
PlanInfo describe(const attention::BranchedForward& forward, const PlanOptions& options);

// All but tuned, plan_ms and compile_ms. devices: the name of each rank's.
RingInfo describe(const ring::PlannedRing& plan, std::span<const std::string> devices);

// Tiles of each launch of each rank: [rank][launch].
std::vector<std::vector<std::int64_t>> count_tiles(const ring::PlannedRing& plan);

// How long a run takes on paper: its branches one after another.
PlanPrediction predict(const attention::BranchedForward& forward);

}  // namespace annulus::planner

#endif  // ANNULUS_PLANNER_DESCRIBE_H_
