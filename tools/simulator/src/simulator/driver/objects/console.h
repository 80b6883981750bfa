#ifndef ANNULUS_SIMULATOR_DRIVER_OBJECTS_CONSOLE_H_
#define ANNULUS_SIMULATOR_DRIVER_OBJECTS_CONSOLE_H_

// Writes to stdout and stderr of the process: what kernels print (printf, assert), as CUDA's driver
// does, and messages for programs that do not use the simulator's interface.

#include <string_view>

namespace annulus::simulator::driver {

void write_stdout(std::string_view text);
void write_stderr(std::string_view text);

}  // namespace annulus::simulator::driver

#endif  // ANNULUS_SIMULATOR_DRIVER_OBJECTS_CONSOLE_H_
