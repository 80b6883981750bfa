#ifndef ANNULUS_PLANNER_RING_PREPARED_RING_H_
#define ANNULUS_PLANNER_RING_PREPARED_RING_H_

// Plans one problem on a ring of ranks. All ranks have the same configuration, because the order of
// the sums, and so every bit of the result, depends on it.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "planner/ring/ring_request.h"
#include "ring/local_ring.h"

namespace annulus::planner {

struct PreparedRing {
  PreparedRing(ring::PlannedRing plan, std::span<const ring::RankDevice> devices)
      : ring(std::move(plan), devices) {}

  ring::LocalRing ring;
  RingInfo info;
  std::vector<std::vector<std::int64_t>> tiles;  // [rank][launch]
};

// Throws as annulus::plan_ring does. The tuned result of rank 0 for a launch with the largest
// shards is used.
std::shared_ptr<const PreparedRing> prepare_ring(std::span<const RankRequest> ranks);

}  // namespace annulus::planner

#endif  // ANNULUS_PLANNER_RING_PREPARED_RING_H_
