#ifndef ANNULUS_RING_CHECK_SCHEDULE_H_
#define ANNULUS_RING_CHECK_SCHEDULE_H_

// Checks a schedule without the code that makes one: from the meaning of the ops, the streams and
// waits that order them, and the problem. What a launch does with its keys is checked in
// check_tiles.h.

#include <vector>

#include "ring/schedule.h"
#include "ring/violation.h"

namespace annulus::ring {

// All violations, at most a few of each kind; empty where the schedule is right. Where two segments
// have up to 2^24 pairs, the pattern is asked about each of them; above that, the pairs are counted
// from intervals of keys (pattern/classify.h). Requires: validate(shards, problem) passes and the
// schedule is for as many ranks.
std::vector<Violation> check_schedule(const Schedule& schedule, const Problem& problem,
                                      const ShardMap& shards);

}  // namespace annulus::ring

#endif  // ANNULUS_RING_CHECK_SCHEDULE_H_
