#ifndef ANNULUS_SIMULATOR_OPS_BARRIER_H_
#define ANNULUS_SIMULATOR_OPS_BARRIER_H_

#include "simulator/machine/cta.h"

namespace annulus::simulator {

// Whether the barrier has all the arrivals that it waits for.
bool barrier_complete(const Cta& cta, const NamedBarrier& barrier);

// Lets the lanes that wait at a barrier go on, with the results of a reduction.
void complete_barrier(Cta& cta, NamedBarrier& barrier);

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_OPS_BARRIER_H_
