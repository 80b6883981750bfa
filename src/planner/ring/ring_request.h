#ifndef ANNULUS_PLANNER_RING_RING_REQUEST_H_
#define ANNULUS_PLANNER_RING_RING_REQUEST_H_

// The request to plan a rank of a ring, and its checks. They are the same whether one caller plans
// all ranks or each rank has its own caller.

#include "annulus/ring.h"
#include "planner/planner.h"
#include "ring/agreement.h"

namespace annulus::planner {

// The objects that it points to must exist until the ring is planned.
struct RankRequest {
  Planner planner;
  const Problem* problem = nullptr;
  const ShardMap* shards = nullptr;
  const RingOptions* options = nullptr;
};

// The terms that the rank must have in common with all others.
ring::Terms terms_of(const RankRequest& rank);

// These functions throw if no ring can be planned for the problem, shards or options. `number` is
// the number of the rank.
void check_problem(const RankRequest& rank);
void check_options(const RankRequest& rank, int number);

}  // namespace annulus::planner

#endif  // ANNULUS_PLANNER_RING_RING_REQUEST_H_
