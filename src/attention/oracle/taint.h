#ifndef ANNULUS_ATTENTION_ORACLE_TAINT_H_
#define ANNULUS_ATTENTION_ORACLE_TAINT_H_

// The rows that a NaN or an infinity in an operand may reach, for a given tile list;
// annulus/oracle.h defines them.

#include <cstdint>
#include <vector>

#include "annulus/oracle.h"
#include "attention/tiles/tile_list.h"

namespace annulus::attention {

// Like annulus::reached_rows(), for the tiles of a list.
std::vector<std::uint8_t> rows_reached(const Problem& problem, const HostInputs& inputs,
                                       const TileList& tiles);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_ORACLE_TAINT_H_
