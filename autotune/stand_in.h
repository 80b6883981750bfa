#ifndef ANNULUS_AUTOTUNE_STAND_IN_H_
#define ANNULUS_AUTOTUNE_STAND_IN_H_

// Substitutes for problems whose blocks each run chooses on the device (annulus/selection.h). They
// are measured instead, because the chosen blocks would depend on the operands, and the time would
// include other work of a run.

#include <cstdint>

#include "annulus/problem.h"
#include "annulus/selection.h"

namespace annulus::autotune {

// The problem with a layout instead of the selection. Each row keeps the blocks that a run always
// keeps, and random other blocks that it sees, up to its limit (blocks_of_row). Its attention
// visits the same number of tiles, in the same number of pieces, as in a run. Up to sixteen heads
// differ, or fewer if they may have millions of blocks. Positions are the default ones. Requires:
// selection::validate passes.
Problem stand_in(const Problem& problem, const Selection& selection, std::uint64_t seed);

// Returns the problem of stand_in() with only the heads of one KV head, if all heads see the same
// keys. Its parts are checked (parts.h).
Problem small_stand_in(const Problem& problem, const Selection& selection, std::uint64_t seed);

}  // namespace annulus::autotune

#endif  // ANNULUS_AUTOTUNE_STAND_IN_H_
