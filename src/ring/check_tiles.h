#ifndef ANNULUS_RING_CHECK_TILES_H_
#define ANNULUS_RING_CHECK_TILES_H_

// Checks whether the launches of a ring compute every visible pair exactly once, tile by tile. It
// evaluates the pattern for each pair at its position in the whole problem. It shares no code with
// the makers of tile lists, placements and needs.

#include <vector>

#include "ring/plan.h"
#include "ring/violation.h"

namespace annulus::ring {

// Every launch must run the ring's configuration, because the check uses the tiles of that
// configuration. A key that a row of the rank sees through a branch must be in exactly one of the
// branch's launches. A tile of a launch with a visible pair must be in the launch's list once. A
// tile that is listed as full must have visible pairs only. The first launch of a rank must start
// without a state, and the last one must write O. The result is empty if no violation is found. The
// time is proportional to the number of pairs.
std::vector<Violation> check_tiles(const PlannedRing& ring);

}  // namespace annulus::ring

#endif  // ANNULUS_RING_CHECK_TILES_H_
