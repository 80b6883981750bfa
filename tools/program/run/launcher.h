#ifndef ANNULUS_PROGRAM_RUN_LAUNCHER_H_
#define ANNULUS_PROGRAM_RUN_LAUNCHER_H_

// annulus run --ranks env: torchrun, mpirun or srun has started this process, among others, and
// tells it by variables of the environment which rank it is. The library reads none of them.

#include <string>

#include "program/run/seat.h"

namespace annulus::program {

// `rendezvous` is --rendezvous; where it is empty, the launcher has to say where ranks meet. Throws
// Error{kInvalidArgument} that names the variables that are missing, no numbers, or contradict each
// other.
Seat launched_seat(const std::string& rendezvous);

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_RUN_LAUNCHER_H_
