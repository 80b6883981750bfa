#ifndef ANNULUS_SIMULATOR_RUN_RUN_WARP_H_
#define ANNULUS_SIMULATOR_RUN_RUN_WARP_H_

// One turn of a warp: how its lanes diverge, converge and wait.
//
// Lanes that are at the same instruction, with the same stack of calls, form a group. The group
// with the lowest program counter runs, and groups that meet merge. Groups that are behind catch up
// with those ahead. So lanes that diverged at a branch meet where its arms join, and that place
// need not be known (no post-dominators). A group that reaches an instruction which needs lanes of
// another group is parked there until they arrive. If all groups are parked or wait, and no
// operation under way could wake them, it is a fault of the kernel (simulator/run/deadlock.h).
//
// Every lane makes progress, as on GPUs from sm_70 on. A group may be in a loop in which it may
// wait for another thread (simulator/decode/polling_loops.h). It gives way to the other groups that
// can run, after a few rounds in which the warp changed nothing, or after many other rounds. It
// runs again when it meets another group, when no other group can run, or when the others have run
// long enough. Other loops run to their end first, so that their lanes leave them together.
//
// Plain instructions run in a loop of a few lines. An instruction that changes groups leaves that
// loop, and the group to run is selected again.

#include "simulator/machine/cta.h"

namespace annulus::simulator {

// Runs `warp` for up to `budget` instructions, or until none of its groups can continue.
template <bool kChecked>
void run_warp(Warp& warp, std::uint32_t budget);

extern template void run_warp<true>(Warp& warp, std::uint32_t budget);
extern template void run_warp<false>(Warp& warp, std::uint32_t budget);

// The lanes that have to be at `inst` together with the lanes of `mask`.
Mask wanted(const Warp& warp, const Inst& inst, Mask mask);

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_RUN_RUN_WARP_H_
