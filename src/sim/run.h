#ifndef ANNULUS_SIM_RUN_H_
#define ANNULUS_SIM_RUN_H_

// The interpreter's loop. A warp runs until its lanes wait or its turn is over; a CTA draws whose
// turn is next. Divergence: lanes that stand at the same instruction form a group, the group with
// the lowest program counter runs, groups that meet merge, and a group that reaches an instruction
// that wants lanes of another group is parked there until they come.

#include "sim/context.h"

namespace annulus::sim {

// Gives `context` the warps of one CTA shape; in prepare.cc. Once per host thread and launch.
void prepare(Context& context, const LaunchRequest& request, GlobalMemory& memory);

// The state in which a CTA starts; run_cta does it first.
void start_cta(Context& context, const LaunchRequest& request, std::uint64_t cta_index,
               const abi::SimulatorOptions& options);

// Runs one CTA to its end. Throws Fault, complete but for what `locate` adds.
void run_cta(Context& context, const LaunchRequest& request, std::uint64_t cta_index,
             const abi::SimulatorOptions& options);

// Lets the lanes that wait at a barrier go on, with the results of a reduction; in ops/barrier.cc.
void complete_barrier(Context& context, NamedBarrier& barrier);

// True when the barrier has all the arrivals it waits for.
bool barrier_complete(const Context& context, const NamedBarrier& barrier);

}  // namespace annulus::sim

#endif  // ANNULUS_SIM_RUN_H_
