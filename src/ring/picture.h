#ifndef ANNULUS_RING_PICTURE_H_
#define ANNULUS_RING_PICTURE_H_

#include <string>

#include "ring/plan.h"

namespace annulus::ring {

// Draws the schedule as SVG: a row for each rank, a column for each step. The colour of a cell
// shows whose keys the rank computes with. The text of a cell has the number of tiles (`tiles` is
// [rank][launch]). The cell is grey if nothing is computed. An arrow to a later row shows a shard
// that is sent on.
std::string draw(const PlannedRing& ring, const std::vector<std::vector<std::int64_t>>& tiles);

}  // namespace annulus::ring

#endif  // ANNULUS_RING_PICTURE_H_
