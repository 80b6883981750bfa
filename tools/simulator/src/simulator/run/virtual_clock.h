#ifndef ANNULUS_SIMULATOR_RUN_VIRTUAL_CLOCK_H_
#define ANNULUS_SIMULATOR_RUN_VIRTUAL_CLOCK_H_

// The clock of co-resident clusters: a sum over the instructions that their warps have run.
//
//   1     an instruction of a warp, which is a cycle of one of a multiprocessor's schedulers
//   32    a matrix product, which keeps its tensor core busy that much longer
//   200   an ordered access, whose thread waits for an answer from level 2; so a warp that
//         polls counts differently from a warp that computes
//
// The clock decides whose turn it is. It does not predict time, because it ignores memory, caches
// and the overlap of instructions.

#include <cstdint>

#include "simulator/machine/cluster.h"

namespace annulus::simulator {

constexpr std::uint64_t kMatrixCost = 32;
constexpr std::uint64_t kOrderedCost = 200;

// The work that the CTAs of a cluster have done. Its start value is arbitrary, and it never
// decreases while the cluster runs.
std::uint64_t work_done(const Cluster& cluster);

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_RUN_VIRTUAL_CLOCK_H_
