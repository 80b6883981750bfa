#ifndef ANNULUS_RING_CHECK_SCHEDULE_H_
#define ANNULUS_RING_CHECK_SCHEDULE_H_

// Whether a schedule is right, found out without its author: nothing here asks how a schedule is
// made. It knows what the ops mean, which streams and waits order them, and the problem.

#include <string>
#include <vector>

#include "ring/schedule.h"

namespace annulus::ring {

struct Violation {
  enum class Kind {
    kPairMissing,  // a visible (query, key) pair is computed by no launch
    kPairTwice,    // ... or by two
    kUnmatched,    // a send without its receive, or the other way round
    kNotThere,     // an op reads a buffer that does not hold what it should by then
    kOverwritten,  // a buffer is written while an op may still read it
    kStuck,        // ops wait for each other in a circle
    kState,        // the first or last launch is not marked, or rows are never finished
    kTooMany,      // more launches than ranks
    kIllFormed,    // a rank, op or buffer number that does not exist
  };
  Kind kind;
  std::string text;  // names the rank, the step and what is wrong
};
const char* to_string(Violation::Kind kind);

// All violations, at most a few of each kind; empty where the schedule is right. Asks the pattern
// about every pair up to 2^24 of them, and about every row above. Requires: validate(shards,
// problem) passes and the schedule is for as many ranks.
std::vector<Violation> check_schedule(const Schedule& schedule, const Problem& problem,
                                      const ShardMap& shards);

}  // namespace annulus::ring

#endif  // ANNULUS_RING_CHECK_SCHEDULE_H_
