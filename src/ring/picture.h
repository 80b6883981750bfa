#ifndef ANNULUS_RING_PICTURE_H_
#define ANNULUS_RING_PICTURE_H_

#include <string>

#include "ring/plan.h"

namespace annulus::ring {

// The schedule as an SVG: a row for each rank, a column for each step. A cell has the colour of the
// keys that it computes with and says how many tiles that takes (`tiles` is [rank][launch]); it is
// grey where nothing is computed. An arrow to the next row shows a shard that is sent on.
std::string draw(const PlannedRing& ring, const std::vector<std::vector<std::int64_t>>& tiles);

}  // namespace annulus::ring

#endif  // ANNULUS_RING_PICTURE_H_
