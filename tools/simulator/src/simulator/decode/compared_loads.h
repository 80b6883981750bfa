#ifndef ANNULUS_SIMULATOR_DECODE_COMPARED_LOADS_H_
#define ANNULUS_SIMULATOR_DECODE_COMPARED_LOADS_H_

// The loop that makes any operation atomic (CUDA C++ Programming Guide, "Atomic Functions", the
// example of atomicAdd for double) begins with an ordinary load. Its value is then compared with
// memory by atom.cas. If the value is outdated, the comparison fails and the loop continues.
// Strictly by the memory model, the load races with the atomics of other threads (PTX ISA 9.0,
// section 8.10.1), unless it is volatile or relaxed. With the option `reading=proven`, it is
// allowed.

#include "simulator/program/program.h"

namespace annulus::simulator {

// Sets Inst::compared for loads of a single register whose value, or a moved copy of it, is
// compared by an atom.cas of the same function.
void mark_compared_loads(Program& program);

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_DECODE_COMPARED_LOADS_H_
