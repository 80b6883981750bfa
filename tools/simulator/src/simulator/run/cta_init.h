#ifndef ANNULUS_SIMULATOR_RUN_CTA_INIT_H_
#define ANNULUS_SIMULATOR_RUN_CTA_INIT_H_

#include "simulator/machine/cluster.h"
#include "simulator/run/launch.h"

namespace annulus::simulator {

// Gives `cluster` CTAs with the warps of the launch. It is called once per host thread and launch.
void prepare(Cluster& cluster, const LaunchRequest& request, GlobalMemory& memory);

// Puts the CTAs of a cluster into the state in which they start. run_cluster calls it first.
void start_cluster(Cluster& cluster, const LaunchRequest& request, std::uint64_t cluster_index,
                   const abi::SimulatorOptions& options);

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_RUN_CTA_INIT_H_
