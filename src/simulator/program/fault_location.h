#ifndef ANNULUS_SIMULATOR_PROGRAM_FAULT_LOCATION_H_
#define ANNULUS_SIMULATOR_PROGRAM_FAULT_LOCATION_H_

#include <cstdint>

#include "simulator/fault/fault.h"
#include "simulator/program/program.h"

namespace annulus::simulator {

// Completes a fault that an instruction threw with its place: the kernel, the line of PTX and the
// lines of the source it came from.
void locate(Fault& fault, const Program& program, std::uint32_t pc);

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_PROGRAM_FAULT_LOCATION_H_
