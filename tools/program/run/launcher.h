#ifndef ANNULUS_PROGRAM_RUN_LAUNCHER_H_
#define ANNULUS_PROGRAM_RUN_LAUNCHER_H_

// annulus run --ranks env: this process was started by torchrun, mpirun or srun, among others.
// Environment variables of the launcher give its rank. The library reads none of them.

#include <string>

#include "program/run/seat.h"

namespace annulus::program {

// `rendezvous` is the value of --rendezvous. If it is empty, the launcher's variables must give the
// place where the ranks meet. Throws Error{kInvalidArgument} that names the variables which are
// missing, are not numbers, or contradict one another.
Seat launched_seat(const std::string& rendezvous);

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_RUN_LAUNCHER_H_
