#ifndef ANNULUS_SIMULATOR_RUN_RUN_CLUSTER_H_
#define ANNULUS_SIMULATOR_RUN_RUN_CLUSTER_H_

// Runs a cluster of CTAs on one host thread. Which warp is next, for how many instructions, and
// when an asynchronous copy lands is drawn from the seed and the index of the CTA, so the number of
// host threads changes nothing.

#include <vector>

#include "simulator/machine/cluster.h"
#include "simulator/run/launch.h"

namespace annulus::simulator {

// Runs one cluster to its end. Clusters are counted as CTAs are, x first. Throws Fault without its
// place, which is the warp in Cluster::running and that warp's `pc`; the caller adds it by locate()
// (simulator/program/fault_location.h).
void run_cluster(Cluster& cluster, const LaunchRequest& request, std::uint64_t cluster_index,
                 const abi::SimulatorOptions& options);

// One turn: a warp of a cluster that was started runs for some instructions, and some of what is
// under way happens. False where all lanes have exited; `ready` is room to work in. Throws Fault as
// run_cluster does.
bool run_turn(Cluster& cluster, const LaunchRequest& request, const abi::SimulatorOptions& options,
              std::vector<Warp*>& ready);
// Counts the CTAs of a cluster that has ended.
void end_cluster(Cluster& cluster);

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_RUN_RUN_CLUSTER_H_
