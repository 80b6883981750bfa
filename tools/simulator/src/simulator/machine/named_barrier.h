#ifndef ANNULUS_SIMULATOR_MACHINE_NAMED_BARRIER_H_
#define ANNULUS_SIMULATOR_MACHINE_NAMED_BARRIER_H_

#include <cstdint>
#include <vector>

#include "simulator/check/block_clocks.h"
#include "simulator/check/cluster_clocks.h"
#include "simulator/program/lanes.h"

namespace annulus::simulator {

constexpr int kNamedBarriers = 16;  // of a CTA

// The state of one barrier of bar.sync, bar.arrive and bar.red. It counts threads, in whole warps
// for the aligned forms.
struct NamedBarrier {
  std::uint32_t expected = 0;  // 0: every warp of the CTA that has not exited
  std::uint32_t arrived = 0;
  bool open = false;
  std::uint32_t warps = 0;      // warps that arrived, waiting or not
  ClusterClocks::Vector times;  // what came before the arrivals, in shared memory
  Knowledge order;              // what did in global memory, where blocks can order themselves
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
