#ifndef ANNULUS_PLANNER_RING_PREPARED_RING_H_
#define ANNULUS_PLANNER_RING_PREPARED_RING_H_

// Plans one problem around a ring of ranks, with one configuration for all of them, because the
// order of the sums, and with it the bits, depends on it.

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

// Throws as annulus::plan_ring. Tuned results are rank 0's, for a launch of the largest shards.
std::shared_ptr<const PreparedRing> prepare_ring(std::span<const RankRequest> ranks);

}  // namespace annulus::planner

#endif  // ANNULUS_PLANNER_RING_PREPARED_RING_H_
