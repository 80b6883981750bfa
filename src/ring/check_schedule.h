#ifndef ANNULUS_RING_CHECK_SCHEDULE_H_
#define ANNULUS_RING_CHECK_SCHEDULE_H_

// Checks a schedule without the code that makes one: from the meaning of the ops, the streams and
// waits that order them, and the problem. What a launch does with its keys is checked in
// check_tiles.h.

#include <vector>

#include "ring/schedule.h"
#include "ring/violation.h"

namespace annulus::ring {

// All violations, at most a few of each kind; empty where the schedule is right:
//
//   every key that a rank sees through a branch is in exactly one of the branch's launches,
//   what one rank sends another receives, the same rows in the same order,
//   a rank receives no row that it does not see, unless the schedule says how many, and why: it
//   passes them on, or they close gaps of a need of very many pieces,
//   rows are where they are read, and stay until then; nothing waits in a circle,
//   own packed rows and slots are within the bound of rounds.h.
//
// Where a rank and an owner have up to 2^24 pairs, the pattern is asked about each of them; above
// that, rows are asked one by one for the keys that they see. Requires: validate(shards, problem)
// passes and the schedule is for as many ranks.
std::vector<Violation> check_schedule(const Schedule& schedule, const Problem& problem,
                                      const ShardMap& shards);

}  // namespace annulus::ring

#endif  // ANNULUS_RING_CHECK_SCHEDULE_H_
