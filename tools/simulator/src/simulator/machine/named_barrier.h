#ifndef ANNULUS_SIMULATOR_MACHINE_NAMED_BARRIER_H_
#define ANNULUS_SIMULATOR_MACHINE_NAMED_BARRIER_H_

#include <cstdint>
#include <vector>

#include "simulator/check/block_clocks.h"
#include "simulator/check/cluster_clocks.h"
#include "simulator/program/lanes.h"

namespace annulus::simulator {

constexpr int kNamedBarriers = 16;  // number of barriers of a CTA

// The state of one barrier of bar.sync, bar.arrive and bar.red. It counts threads. The aligned
// forms count whole warps.
struct NamedBarrier {
  std::uint32_t expected = 0;  // 0: every warp of the CTA that has not exited
  std::uint32_t arrived = 0;
  bool open = false;
  std::uint32_t warps = 0;      // warps that arrived, including those of bar.arrive
  ClusterClocks::Vector times;  // accesses of shared memory before the arrivals
  Knowledge order;  // accesses of global memory before the arrivals, if blocks can order themselves
  std::uint32_t predicate_count = 0;
  bool predicate_and = true;
  bool predicate_or = false;
  struct Waiter {
    int warp;
    std::uint32_t inst;
    Mask mask;
  };
  std::vector<Waiter> waiters;
};

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_MACHINE_NAMED_BARRIER_H_
