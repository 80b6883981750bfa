#ifndef ANNULUS_SIMULATOR_MACHINE_ARRIVALS_H_
#define ANNULUS_SIMULATOR_MACHINE_ARRIVALS_H_

// For checked mode: which accesses come before the arrivals at an object that has phases. The
// object is an mbarrier or the barrier of a cluster. The arrivals of the open phase are stored
// apart, because nothing comes after them yet.

#include "simulator/check/block_clocks.h"
#include "simulator/check/cluster_clocks.h"

namespace annulus::simulator {

struct Warp;

struct Arrivals {
  struct Before {
    ClusterClocks::Vector shared;  // accesses of shared memory
    Knowledge global;              // accesses of global memory, if blocks order themselves
  };
  Before open;  // the arrivals of the open phase
  Before over;  // the arrivals of the phases that are over

  // Lanes of the running warp arrive, and release what they know.
  void release(const Warp& warp, ClusterClocks::Lanes lanes);
  // The running warp has observed that a phase is over.
  void acquire(const Warp& warp) const;
  // Release and acquire, if the scope of one of the two does not include the thread of the other
  // (ClusterClocks::release_ended).
  void release_ended(const Warp& warp, ClusterClocks::Lanes lanes);
  void acquire_ended(const Warp& warp) const;
  void end_phase();
};

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_MACHINE_ARRIVALS_H_
