#ifndef ANNULUS_AUTOTUNE_PARTS_H_
#define ANNULUS_AUTOTUNE_PARTS_H_

// Chooses parts of a problem that are small enough to be checked pair by pair and to be simulated.
// A part is a problem of its own: some heads, query rows and keys at their positions in the whole
// problem, so that its tiles are tiles of the whole.

#include <vector>

#include "annulus/problem.h"

namespace annulus::autotune {

// Parts begin at multiples of this, which is a multiple of the tile rows of every configuration.
inline constexpr std::int64_t kPartRows = 256;

// The whole problem with few heads and batches where its tiles hold at most max_pairs pairs.
// Otherwise some strips of rows, the first and the last among them, each with as many keys up to
// the last one that it sees as max_pairs allows. The parts ask for LSE wherever they can. Requires:
// a valid problem with B, Sq > 0. A CTA, or a cluster, of the configurations to be checked computes
// `packed_heads` query heads together, or a divisor of that: a part has a multiple of it for each
// KV head, as far as the problem does, and is larger than max_pairs where it would have very few
// keys otherwise.
std::vector<Problem> choose_parts(const Problem& problem, double max_pairs, int packed_heads);

// Keeps only the first heads, with the score's entries for them.
void keep_heads(Problem* problem, std::int64_t heads);
// Keeps a score's entries for the first heads.
void keep_heads(Score* score, std::int64_t heads);

}  // namespace annulus::autotune

#endif  // ANNULUS_AUTOTUNE_PARTS_H_
