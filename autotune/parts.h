#ifndef ANNULUS_AUTOTUNE_PARTS_H_
#define ANNULUS_AUTOTUNE_PARTS_H_

// Parts of a problem that are small enough to be checked pair by pair and to be simulated. A part
// is a problem of its own: some heads, some query rows, some keys, at the positions that they have
// in the whole, so that its tiles are tiles of the whole.

#include <vector>

#include "annulus/attention.h"

namespace annulus::autotune {

// Parts begin at multiples of this, and so on a tile of every configuration.
inline constexpr std::int64_t kPartRows = 256;

// The whole with few heads and batches where its tiles hold at most max_pairs pairs, else the
// first and the last rows and some in between, with as many keys up to the last one they see as
// there is room for. LSE is wanted wherever it can be. Requires: a valid problem with B, Sq > 0.
std::vector<Problem> choose_parts(const Problem& problem, double max_pairs);

}  // namespace annulus::autotune

#endif  // ANNULUS_AUTOTUNE_PARTS_H_
