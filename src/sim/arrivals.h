#ifndef ANNULUS_SIM_ARRIVALS_H_
#define ANNULUS_SIM_ARRIVALS_H_

// What comes before the arrivals at something that has phases: an mbarrier, the barrier of a
// cluster. Those of the open phase are kept apart, because nobody comes after them yet. For the
// checked twin.

#include "sim/block_clocks.h"
#include "sim/cluster_clocks.h"

namespace annulus::sim {

struct Context;

struct Arrivals {
  struct Before {
    ClusterClocks::Vector shared;  // in shared memory
    Knowledge global;              // in global memory, where blocks order themselves
  };
  Before open;  // the arrivals of the open phase
  Before over;  // and those of the phases that are over

  // Lanes of the running warp arrive, and release what they know.
  void release(Context& context, ClusterClocks::Lanes lanes);
  // The running warp has seen that a phase is over.
  void acquire(Context& context) const;
  void end_phase();
};

}  // namespace annulus::sim

#endif  // ANNULUS_SIM_ARRIVALS_H_
