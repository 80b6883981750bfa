#ifndef ANNULUS_SIMULATOR_RUN_DEADLOCK_H_
#define ANNULUS_SIMULATOR_RUN_DEADLOCK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "simulator/machine/cluster.h"

namespace annulus::simulator {

// Called if no warp of the cluster can continue. Throws the Fault with the reason.
[[noreturn]] void report_deadlock(Cluster& cluster);

// Called if all warps that can run, of all co-resident clusters, poll memory that no thread will
// write. `unstarted` CTAs have not started. Throws the Fault, at the first cluster.
[[noreturn]] void report_polls(const std::vector<Cluster*>& clusters, std::uint64_t unstarted);

// A description of what the warps of a CTA do and wait for: "warp 0 runs at PTX line 9; barrier 0
// has 32 of 64 threads".
std::string waits_text(const Cta& cta);

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_RUN_DEADLOCK_H_
