#ifndef ANNULUS_SIMULATOR_OPS_BARRIER_H_
#define ANNULUS_SIMULATOR_OPS_BARRIER_H_

#include "simulator/machine/cta.h"

namespace annulus::simulator {

// Whether all threads that the barrier waits for have arrived.
bool barrier_complete(const Cta& cta, const NamedBarrier& barrier);

// Lets the lanes that wait at a barrier continue, with the results of a reduction.
void complete_barrier(Cta& cta, NamedBarrier& barrier);

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_OPS_BARRIER_H_
