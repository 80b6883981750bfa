#ifndef ANNULUS_SIMULATOR_CHECK_BLOCK_CLOCKS_H_
#define ANNULUS_SIMULATOR_CHECK_BLOCK_CLOCKS_H_

// For each warp of a block: which accesses of all other warps come before its next access
// (simulator/check/block_order.h). The warp "knows" these accesses.

#include <cstdint>
#include <vector>

namespace annulus::simulator {

// A clock for each warp, by the number of the warp in the grid.
using Clocks = std::vector<std::uint32_t>;

// The knowledge of a warp, which a barrier passes to other warps.
struct Knowledge {
  Clocks known;
  Clocks pending;    // taken from strong reads; a fence adds it to `known`
  Clocks published;  // the value of `known` at the last fence, which strong writes publish
};

struct BlockClocks {
  struct Warp : Knowledge {
    std::uint32_t clock = 1;
  };
  std::uint64_t first_warp = 0;
  std::vector<Warp> warps;
  bool unfinished = false;  // the warp's accesses now are writes that happen later, at an unknown
                            // moment
  bool bulk = false;        // the warp's accesses now are accesses of a bulk copy
  Knowledge atomics;        // Atomics on shared memory also order the warps that execute them.
};

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_CHECK_BLOCK_CLOCKS_H_
