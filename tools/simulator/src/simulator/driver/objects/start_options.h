#ifndef ANNULUS_SIMULATOR_DRIVER_OBJECTS_START_OPTIONS_H_
#define ANNULUS_SIMULATOR_DRIVER_OBJECTS_START_OPTIONS_H_

// The options that the devices have before a program sets any. They come from the environment
// variable ANNULUS_SIMULATOR_OPTIONS, for programs that do not use the simulator's interface.
//
//   ANNULUS_SIMULATOR_OPTIONS="checked=1,seed=3,reading=strict,ignored=missing fence+early reuse"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "abi/cuda_types.h"
#include "base/log.h"

namespace annulus::simulator::driver {

// Declares that this library serves programs that were written for a CUDA driver, as libcuda.so.1
// does. The option `reading` is then `proven`, unless the program or the environment sets it. It is
// called before cuInit.
void serve_foreign_programs();
bool serves_foreign_programs();
// The most detailed level of log lines that the stderr of such a program gets: ANNULUS_LOG, or
// warnings.
base::LogLevel foreign_log_level();

// Whether all members are in range (annulus/simulator.h).
bool valid(const abi::SimulatorOptions& options);

// Reads NAME=VALUE pairs, separated by commas, into *options. Returns an empty text. If the text is
// wrong, it returns an error message and leaves *options unchanged.
std::string read_options(std::string_view text, abi::SimulatorOptions* options);

// The devices that a program sees, out of `count`, in its order. If the library serves programs
// that were written for a CUDA driver, these are the devices whose numbers CUDA_VISIBLE_DEVICES
// lists, up to the first invalid number; otherwise all.
std::vector<int> visible_devices(int count);

// The options with which devices start. Returns no value if ANNULUS_SIMULATOR_OPTIONS is wrong, and
// writes the reason to stderr, since there is no log yet.
std::optional<abi::SimulatorOptions> read_start_options();

}  // namespace annulus::simulator::driver

#endif  // ANNULUS_SIMULATOR_DRIVER_OBJECTS_START_OPTIONS_H_
