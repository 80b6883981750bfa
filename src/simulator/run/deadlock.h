#ifndef ANNULUS_SIMULATOR_RUN_DEADLOCK_H_
#define ANNULUS_SIMULATOR_RUN_DEADLOCK_H_

#include "simulator/machine/cluster.h"

namespace annulus::simulator {

// Called where no warp of the cluster can go on. Throws the Fault that says why.
[[noreturn]] void report_deadlock(Cluster& cluster);

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_RUN_DEADLOCK_H_
