#ifndef ANNULUS_SIMULATOR_RUN_CTA_INIT_H_
#define ANNULUS_SIMULATOR_RUN_CTA_INIT_H_

#include "simulator/machine/cluster.h"
#include "simulator/run/launch.h"

namespace annulus::simulator {

// Makes the CTAs of `cluster`, with the warps of the launch. It is called once for each host thread
// and launch.
void prepare(Cluster& cluster, const LaunchRequest& request, GlobalMemory& memory);

// Sets the CTAs of a cluster to their starting state. run_cluster calls it first.
void start_cluster(Cluster& cluster, const LaunchRequest& request, std::uint64_t cluster_index,
                   const abi::SimulatorOptions& options);

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_RUN_CTA_INIT_H_
