#ifndef ANNULUS_SIM_RUN_H_
#define ANNULUS_SIM_RUN_H_

// The interpreter's loop. A warp runs until its lanes wait or its turn is over; a cluster of CTAs
// draws whose turn is next. Divergence: lanes that stand at the same instruction form a group, the
// group with the lowest program counter runs, groups that meet merge, and a group that reaches an
// instruction that wants lanes of another group is parked there until they come.

#include "sim/context.h"

namespace annulus::sim {

struct Cluster;

// Gives `cluster` CTAs with the warps of the launch; in prepare.cc. Once per host thread and
// launch.
void prepare(Cluster& cluster, const LaunchRequest& request, GlobalMemory& memory);

// The state in which the CTAs of a cluster start; run_cluster does it first.
void start_cluster(Cluster& cluster, const LaunchRequest& request, std::uint64_t cluster_index,
                   const abi::SimulatorOptions& options);

// Runs one cluster to its end; clusters are counted as CTAs are, x first. Throws Fault, complete
// but for what `locate` adds, at the warp and instruction of Cluster::running.
void run_cluster(Cluster& cluster, const LaunchRequest& request, std::uint64_t cluster_index,
                 const abi::SimulatorOptions& options);

// Nobody can go on: throws the Fault that says why; in stuck.cc.
[[noreturn]] void stuck(Cluster& cluster);

// The lanes that have to stand at `inst` together with those of `mask`.
Mask wanted(const Context& context, const Warp& warp, const Inst& inst, Mask mask);

std::string lanes_text(Mask mask);

// Lets the lanes that wait at a barrier go on, with the results of a reduction; in ops/barrier.cc.
void complete_barrier(Context& context, NamedBarrier& barrier);

// True when the barrier has all the arrivals it waits for.
bool barrier_complete(const Context& context, const NamedBarrier& barrier);

}  // namespace annulus::sim

#endif  // ANNULUS_SIM_RUN_H_
