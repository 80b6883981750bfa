#ifndef ANNULUS_SIMULATOR_PROGRAM_FAULT_LOCATION_H_
#define ANNULUS_SIMULATOR_PROGRAM_FAULT_LOCATION_H_

#include <cstdint>

#include "simulator/fault/fault.h"
#include "simulator/program/program.h"

namespace annulus::simulator {

// Adds the place to a fault that an instruction threw: the kernel, the line of PTX and the source
// lines that it came from.
void locate(Fault& fault, const Program& program, std::uint32_t pc);

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_PROGRAM_FAULT_LOCATION_H_
