#ifndef ANNULUS_AUTOTUNE_STAND_IN_H_
#define ANNULUS_AUTOTUNE_STAND_IN_H_

// Problems that are measured in place of those whose blocks each run chooses on the device
// (annulus/selection.h): what is chosen would depend on the operands, and the time on what else a
// run does.

#include <cstdint>

#include "annulus/problem.h"
#include "annulus/selection.h"

namespace annulus::autotune {

// The problem with a layout in place of the selection: each row keeps the blocks that a run always
// keeps, and others that it sees, drawn at random, as many as it may have (blocks_of_row). Its
// attention visits as many tiles, in as many pieces, as that of a run. Heads differ, up to sixteen
// of them and fewer where they may have millions of blocks. Positions are the default ones.
// Requires: selection::validate passes.
Problem stand_in(const Problem& problem, const Selection& selection, std::uint64_t seed);

// That with the heads of one KV head, of which parts are checked (parts.h), where all heads see the
// same.
Problem small_stand_in(const Problem& problem, const Selection& selection, std::uint64_t seed);

}  // namespace annulus::autotune

#endif  // ANNULUS_AUTOTUNE_STAND_IN_H_
