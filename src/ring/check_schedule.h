#ifndef ANNULUS_RING_CHECK_SCHEDULE_H_
#define ANNULUS_RING_CHECK_SCHEDULE_H_

// Checks a schedule without the code that makes schedules. It uses the meaning of the ops, the
// streams and waits that order them, and the problem. check_tiles.h checks which keys a launch uses
// in each tile.

#include <vector>

#include "ring/schedule.h"
#include "ring/violation.h"

namespace annulus::ring {

// Returns all violations, at most a few of each kind. The result is empty if all of this is true:
//
//   Every key that a rank sees through a branch is in exactly one of the branch's launches.
//   The rows that one rank sends are the rows that the other rank receives, in the same order.
//   A rank receives only rows that it sees, and the number of other rows that the schedule states:
//   rows that it passes on, and rows between needed ones, which keep a list of pieces short (needs.h).
//   Rows are in their place when they are read, and no ops wait for each other in a circle.
//   A rank's own packed rows and its slots are within the limit of rounds.h.
//
// If a rank and an owner have at most 2^24 pairs of a query and a key, the pattern is evaluated for
// each pair. If they have more, it is evaluated for the keys of one row at a time. Requires:
// validate(shards, problem) passes, and the schedule is for the same number of ranks.
std::vector<Violation> check_schedule(const Schedule& schedule, const Problem& problem,
                                      const ShardMap& shards);

}  // namespace annulus::ring

#endif  // ANNULUS_RING_CHECK_SCHEDULE_H_
