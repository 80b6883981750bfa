#ifndef ANNULUS_RING_CHECK_TILES_H_
#define ANNULUS_RING_CHECK_TILES_H_

// Whether the launches of a ring compute every visible pair exactly once, tile by tile. Asks the
// pattern about each pair at its position in the whole problem, and shares no code with what makes
// tile lists, placements and needs.

#include <vector>

#include "ring/plan.h"
#include "ring/violation.h"

namespace annulus::ring {

// Every launch must run the configuration of the ring, whose tiles are the ones that are checked. A
// key that a row of the rank sees through a branch must be in exactly one of that branch's
// launches. A tile of a launch with a visible pair must be in its list once, and a tile that is
// listed as full must have visible pairs only. The first launch of a rank must start from nothing
// and the last one write O. The result is empty where all is right; the time grows with the number
// of pairs.
std::vector<Violation> check_tiles(const PlannedRing& ring);

}  // namespace annulus::ring

#endif  // ANNULUS_RING_CHECK_TILES_H_
