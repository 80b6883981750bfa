#ifndef ANNULUS_PATTERN_RANDOM_BLOCKS_H_
#define ANNULUS_PATTERN_RANDOM_BLOCKS_H_

// The column blocks that random(c, seed, b) chooses for a row of blocks: the same on every machine
// and for every way to cut the problem, because a counter-based generator is asked by name.

#include <cstdint>
#include <vector>

#include "annulus/pattern.h"
#include "pattern/node.h"

namespace annulus::pattern {

// How many column blocks there are to choose from: ceil(Sk / b). Throws Error{kInvalidArgument}
// where the context does not know Sk or its layer is outside [0, 2^32).
std::int64_t random_columns(const Node& leaf, const PatternContext& context);

// min(c, columns) distinct numbers in [0, columns), ascending, into *chosen. Floyd's algorithm: for
// d = 0, 1, ... and top = columns - c + d draw t in [0, top], and take t, or top where t is taken.
// Draw d is philox(counter {d, row, head, layer}, key {seed low, seed high}): its first two words,
// low first, are u, and t = floor(u (top + 1) / 2^64). Row and head count modulo 2^32.
void choose_columns(const Node& leaf, std::int64_t head, std::int64_t block_row,
                    std::int64_t columns, const PatternContext& context,
                    std::vector<std::int64_t>* chosen);

}  // namespace annulus::pattern

#endif  // ANNULUS_PATTERN_RANDOM_BLOCKS_H_
