#ifndef ANNULUS_PLANNER_RING_RING_REQUEST_H_
#define ANNULUS_PLANNER_RING_RING_REQUEST_H_

// What a rank of a ring is asked to plan, and what is asked of it, whoever plans the others.

#include "annulus/ring.h"
#include "planner/planner.h"
#include "ring/agreement.h"

namespace annulus::planner {

// The values that it points to must stay until the ring is planned.
struct RankRequest {
  Planner planner;
  const Problem* problem = nullptr;
  const ShardMap* shards = nullptr;
  const RingOptions* options = nullptr;
};

// What the rank has to have in common with all others.
ring::Terms terms_of(const RankRequest& rank);

// Throw for a problem, shards or options that no ring can follow. `number` is the rank's.
void check_problem(const RankRequest& rank);
void check_options(const RankRequest& rank, int number);

}  // namespace annulus::planner

#endif  // ANNULUS_PLANNER_RING_RING_REQUEST_H_
