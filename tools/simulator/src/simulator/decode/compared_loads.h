#ifndef ANNULUS_SIMULATOR_DECODE_COMPARED_LOADS_H_
#define ANNULUS_SIMULATOR_DECODE_COMPARED_LOADS_H_

// The loop that makes any operation atomic (CUDA C++ Programming Guide, "Atomic Functions", the
// example of atomicAdd for double) begins with an ordinary load, whose value atom.cas then compares
// with what is there. If the value is an old one, the comparison fails and the loop goes on. To the
// letter of the memory model the load races with the atomics of other threads (PTX ISA 9.0, section
// 8.10.1), unless it is volatile or relaxed; the proven reading allows that.

#include "simulator/program/program.h"

namespace annulus::simulator {

// Sets Inst::compared for loads of one register whose value, itself or moved, is what an
// atom.cas of the same function compares.
void mark_compared_loads(Program& program);

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_DECODE_COMPARED_LOADS_H_
