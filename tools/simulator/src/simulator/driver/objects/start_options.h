#ifndef ANNULUS_SIMULATOR_DRIVER_OBJECTS_START_OPTIONS_H_
#define ANNULUS_SIMULATOR_DRIVER_OBJECTS_START_OPTIONS_H_

// The options that the devices have before a program sets any: those of ANNULUS_SIMULATOR_OPTIONS,
// for programs that know nothing of the simulator.
//
//   ANNULUS_SIMULATOR_OPTIONS="checked=1,seed=3,reading=strict,ignored=missing fence+early reuse"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "abi/cuda_types.h"
#include "base/log.h"

namespace annulus::simulator::driver {

// Says that this library serves programs that were written for a CUDA driver, as libcuda.so.1 does:
// the reading is then `proven` unless the program or the environment says otherwise. Called before
// cuInit.
void serve_foreign_programs();
bool serves_foreign_programs();
// Up to which level such a program's stderr gets the lines of the devices' logs: ANNULUS_LOG, or
// warnings.
base::LogLevel foreign_log_level();

// Whether all members are in range (annulus/simulator.h).
bool valid(const abi::SimulatorOptions& options);

// Reads NAME=VALUE pairs, separated by commas, over *options. Where the text is wrong it returns
// what is, and leaves *options alone; else an empty text.
std::string read_options(std::string_view text, abi::SimulatorOptions* options);

// Which devices a program sees, of `count`, in its order. Those that CUDA_VISIBLE_DEVICES names by
// their numbers where the library serves foreign programs, up to the first that is none; else all.
std::vector<int> visible_devices(int count);

// The options with which devices start. Empty where ANNULUS_SIMULATOR_OPTIONS is wrong, which is
// then said on stderr: there is no other place yet.
std::optional<abi::SimulatorOptions> read_start_options();

}  // namespace annulus::simulator::driver

#endif  // ANNULUS_SIMULATOR_DRIVER_OBJECTS_START_OPTIONS_H_
