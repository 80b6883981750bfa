#ifndef ANNULUS_ATTENTION_TAINT_H_
#define ANNULUS_ATTENTION_TAINT_H_

// How far a NaN or an infinity in an operand may reach: a query's stays in its own row, a key's or
// a value's reaches every row of the tile rows that read its tile, whether they see it or not,
// because a matrix instruction multiplies what is masked by zero. No other row may change.

#include <cstdint>
#include <vector>

#include "attention/reference.h"
#include "attention/tile_list.h"

namespace annulus::attention {

// [B H Sq]: 1 where the row may be reached. Empty where all operands are finite. A carried state is
// not looked at: it reaches its own row, which the oracle knows.
std::vector<std::uint8_t> reached_rows(const Problem& problem, const HostInputs& inputs,
                                       const TileList& tiles);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_TAINT_H_
