#ifndef ANNULUS_SIMULATOR_RUN_CTA_INIT_H_
#define ANNULUS_SIMULATOR_RUN_CTA_INIT_H_

#include "simulator/machine/cluster.h"
#include "simulator/run/launch.h"

namespace annulus::simulator {

// Gives `cluster` CTAs with the warps of the launch. Once per host thread and launch.
void prepare(Cluster& cluster, const LaunchRequest& request, GlobalMemory& memory);

// The state in which the CTAs of a cluster start; run_cluster does it first.
void start_cluster(Cluster& cluster, const LaunchRequest& request, std::uint64_t cluster_index,
                   const abi::SimulatorOptions& options);

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_RUN_CTA_INIT_H_
