#ifndef ANNULUS_SIMULATOR_DECODE_POLLING_LOOPS_H_
#define ANNULUS_SIMULATOR_DECODE_POLLING_LOOPS_H_

// Finds the loops in which a thread may wait for another thread. They contain an atomic whose
// result is used, a load that is volatile, relaxed or acquire, a fence, a test of an mbarrier, a
// pause (nanosleep), or a call of a function, which may contain one of these. Lanes in such a loop
// give way to other lanes of their warp (simulator/run/run_warp.h).

#include "simulator/program/program.h"

namespace annulus::simulator {

// Sets Inst::polls for the branches back to the beginning of such a loop. Requires: targets of
// branches are indices into the whole program.
void mark_polling_loops(Program& program);

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_DECODE_POLLING_LOOPS_H_
