#ifndef ANNULUS_SIMULATOR_CHECK_BLOCK_CLOCKS_H_
#define ANNULUS_SIMULATOR_CHECK_BLOCK_CLOCKS_H_

// What the warps of a block know of the accesses of all other warps
// (simulator/check/block_order.h).

#include <cstdint>
#include <vector>

namespace annulus::simulator {

// A clock for each warp, by the number of the warp in the grid.
using Clocks = std::vector<std::uint32_t>;

// What a warp knows, and what it hands to others at a barrier.
struct Knowledge {
  Clocks known;
  Clocks pending;    // taken up by strong reads, until a fence makes it known
  Clocks published;  // what was known at the last fence, which strong writes give to others
};

struct BlockClocks {
  struct Warp : Knowledge {
    std::uint32_t clock = 1;
  };
  std::uint64_t first_warp = 0;
  std::vector<Warp> warps;
  bool unfinished = false;  // what is accessed now is written later, at a moment nobody knows yet
  bool bulk = false;        // what is accessed now is accessed by a bulk copy
  Knowledge atomics;        // atomics on shared memory order the warps that execute them
};

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_CHECK_BLOCK_CLOCKS_H_
