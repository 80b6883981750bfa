#ifndef ANNULUS_RING_CHECK_SCHEDULE_H_
#define ANNULUS_RING_CHECK_SCHEDULE_H_

// Whether a schedule is right, found out without its author: nothing here asks how a schedule is
// made. It knows what the ops mean, which streams and waits order them, and the
// problem. What a launch does with its keys is checked in check_tiles.h.

#include <vector>

#include "ring/schedule.h"
#include "ring/violation.h"

namespace annulus::ring {

// All violations, at most a few of each kind; empty where the schedule is right. Asks the pattern
// about every pair up to 2^24 of them, and about every row above. Requires: validate(shards,
// problem) passes and the schedule is for as many ranks.
std::vector<Violation> check_schedule(const Schedule& schedule, const Problem& problem,
                                      const ShardMap& shards);

}  // namespace annulus::ring

#endif  // ANNULUS_RING_CHECK_SCHEDULE_H_
