#ifndef ANNULUS_SIMULATOR_DRIVER_OBJECTS_CONSOLE_H_
#define ANNULUS_SIMULATOR_DRIVER_OBJECTS_CONSOLE_H_

// What is written to the streams of the process: by kernels (printf, assert), as CUDA's driver does
// for them, and where a program that knows nothing of the simulator has no other way to be told.

#include <string_view>

namespace annulus::simulator::driver {

void write_stdout(std::string_view text);
void write_stderr(std::string_view text);

}  // namespace annulus::simulator::driver

#endif  // ANNULUS_SIMULATOR_DRIVER_OBJECTS_CONSOLE_H_
