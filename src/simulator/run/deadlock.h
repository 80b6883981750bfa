#ifndef ANNULUS_SIMULATOR_RUN_DEADLOCK_H_
#define ANNULUS_SIMULATOR_RUN_DEADLOCK_H_

#include "simulator/machine/cluster.h"

namespace annulus::simulator {

// No warp of the cluster can go on: throws the Fault that says why.
[[noreturn]] void report_deadlock(Cluster& cluster);

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_RUN_DEADLOCK_H_
