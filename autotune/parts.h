#ifndef ANNULUS_AUTOTUNE_PARTS_H_
#define ANNULUS_AUTOTUNE_PARTS_H_

// Chooses parts of a problem that are small enough to be checked pair by pair and to be simulated.
// A part is a separate problem: some heads, query rows and keys at their positions in the whole
// problem, so that its tiles are tiles of the whole problem.

#include <vector>

#include "annulus/problem.h"

namespace annulus::autotune {

// Parts begin at multiples of this number of rows, which is a multiple of the tile rows of every
// configuration.
inline constexpr std::int64_t kPartRows = 256;

// Returns the whole problem with few heads and batches, if its tiles then hold at most max_pairs
// pairs. Otherwise returns some strips of rows, including the first and the last. Each strip has as
// many keys, up to the last key that it sees, as max_pairs allows. The parts request LSE if they
// can. Requires: a valid problem with B, Sq > 0. A CTA, or a cluster, of the configurations to
// check computes `packed_heads` query heads together, or a divisor of that number. So for each KV
// head a part has a multiple of `packed_heads` query heads, as far as the problem allows. A part is
// larger than max_pairs if it would otherwise have very few keys.
std::vector<Problem> choose_parts(const Problem& problem, double max_pairs, int packed_heads);

// Keeps only the first heads, and the score's entries for them.
void keep_heads(Problem* problem, std::int64_t heads);
// Keeps the score's entries for the first heads.
void keep_heads(Score* score, std::int64_t heads);

}  // namespace annulus::autotune

#endif  // ANNULUS_AUTOTUNE_PARTS_H_
