#ifndef ANNULUS_SIMULATOR_MACHINE_ARRIVALS_H_
#define ANNULUS_SIMULATOR_MACHINE_ARRIVALS_H_

// For checked mode: what comes before the arrivals at something that has phases, which is an
// mbarrier or the barrier of a cluster. The arrivals of the open phase are kept apart, because
// nothing comes after them yet.

#include "simulator/check/block_clocks.h"
#include "simulator/check/cluster_clocks.h"

namespace annulus::simulator {

struct Warp;

struct Arrivals {
  struct Before {
    ClusterClocks::Vector shared;  // in shared memory
    Knowledge global;              // in global memory, where blocks order themselves
  };
  Before open;  // the arrivals of the open phase
  Before over;  // and those of the phases that are over

  // Lanes of the running warp arrive and release what they know.
  void release(const Warp& warp, ClusterClocks::Lanes lanes);
  // The running warp has seen that a phase is over.
  void acquire(const Warp& warp) const;
  // Release and acquire where the scope of one of the two does not include the other's thread
  // (ClusterClocks::release_ended).
  void release_ended(const Warp& warp, ClusterClocks::Lanes lanes);
  void acquire_ended(const Warp& warp) const;
  void end_phase();
};

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_MACHINE_ARRIVALS_H_
