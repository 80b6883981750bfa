#ifndef ANNULUS_SIMULATOR_RUN_RUN_CLUSTER_H_
#define ANNULUS_SIMULATOR_RUN_RUN_CLUSTER_H_

// Runs a cluster of CTAs on one host thread. The next warp, the number of its instructions and the
// moment at which an asynchronous copy lands are drawn from the seed and the index of the CTA. So
// the number of host threads changes nothing.

#include <vector>

#include "simulator/machine/cluster.h"
#include "simulator/run/launch.h"

namespace annulus::simulator {

// Runs one cluster to its end. Clusters are counted like CTAs, x first. Throws Fault without its
// place, which is the warp in Cluster::running and that warp's `pc`. The caller adds the place by
// locate() (simulator/program/fault_location.h).
void run_cluster(Cluster& cluster, const LaunchRequest& request, std::uint64_t cluster_index,
                 const abi::SimulatorOptions& options);

// One turn of a cluster that was started: a warp runs for some instructions, and some of the
// operations under way take effect. Returns false if all lanes have exited. `ready` is scratch
// space. Throws Fault like run_cluster.
bool run_turn(Cluster& cluster, const LaunchRequest& request, const abi::SimulatorOptions& options,
              std::vector<Warp*>& ready);
// Counts the CTAs of a cluster that has ended.
void end_cluster(Cluster& cluster);

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_RUN_RUN_CLUSTER_H_
