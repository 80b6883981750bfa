#ifndef ANNULUS_SIMULATOR_DRIVER_ENTRIES_ABSENT_H_
#define ANNULUS_SIMULATOR_DRIVER_ENTRIES_ABSENT_H_

// A function for each line of absent.def, under the name of its symbol. It takes no parameters.
// Callers in C may still pass parameters, because the function writes nothing and only
// returns a code.

#include <string>

#include "abi/cuda_types.h"

namespace annulus::simulator::driver::absent {

// Writes a line to the log of the current device, or of the first device if none is current: a
// program may call an absent function before it has a context.
void log_warning(const std::string& text);

#define ABSENT(symbol) abi::CUresult symbol();
#include "simulator/driver/entries/absent.def"

}  // namespace annulus::simulator::driver::absent

#endif  // ANNULUS_SIMULATOR_DRIVER_ENTRIES_ABSENT_H_
