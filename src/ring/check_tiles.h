#ifndef ANNULUS_RING_CHECK_TILES_H_
#define ANNULUS_RING_CHECK_TILES_H_

// Whether the launches of a ring compute every visible pair exactly once, tile by tile. Asks the
// pattern about each pair at its position in the whole problem, and nothing of how tile lists,
// placements and needs are made.

#include <vector>

#include "ring/plan.h"
#include "ring/violation.h"

namespace annulus::ring {

// Every launch must run the configuration of the ring, whose tiles are those spoken of here.
// Every tile with a pair that a branch of the pattern shows must be in the list of exactly one
// launch of that branch that has its keys, and
// no tile may count as full that holds a pair which is not visible. The first launch of a rank must
// start from nothing and the last one write O. Empty where all is right; costs by the pairs.
std::vector<Violation> check_tiles(const PlannedRing& ring);

}  // namespace annulus::ring

#endif  // ANNULUS_RING_CHECK_TILES_H_
