#ifndef ANNULUS_SIMULATOR_RUN_VIRTUAL_CLOCK_H_
#define ANNULUS_SIMULATOR_RUN_VIRTUAL_CLOCK_H_

// The clock of clusters that live together: a sum over the instructions that their warps have run.
//
//   1     an instruction of a warp, which is a cycle of one of a multiprocessor's schedulers
//   32    a matrix product, whose tensor core is busy that much longer
//   200   an ordered access, which a thread waits for until level 2 has answered; so a warp that
//         polls does not count as one that computes
//
// It says whose turn it is, and predicts no time: of memory, caches and how instructions overlap it
// knows nothing.

#include <cstdint>

#include "simulator/machine/cluster.h"

namespace annulus::simulator {

constexpr std::uint64_t kMatrixCost = 32;
constexpr std::uint64_t kOrderedCost = 200;

// What the CTAs of a cluster have done. It starts anywhere and never goes back while the cluster
// lives.
std::uint64_t work_done(const Cluster& cluster);

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_RUN_VIRTUAL_CLOCK_H_
