#ifndef ANNULUS_SUPPORT_SIMULATOR_H_
#define ANNULUS_SUPPORT_SIMULATOR_H_

// Opens the simulator as the library does, from the shared library in the build tree. The tests of
// the simulator itself link it instead. A process may use only one of the two.

#include <memory>
#include <stdexcept>
#include <string>

#include "abi/libraries.h"
#include "base/env.h"
#include "device/driver.h"
#include "device/simulator.h"

namespace annulus::test {

inline abi::CudaLibrary open_simulator() {
  return abi::open_simulator(abi::default_search(base::read_environment()));
}

// The simulator's table, for tests that replace some of its functions. The library stays loaded.
inline abi::CudaTable simulator_table() { return open_simulator().table; }

inline device::DriverPointer simulator_driver() {
  return std::make_shared<const device::Driver>(open_simulator());
}

// The number of the device "sim:ARCHITECTURE:INDEX".
inline int number_of_simulated(const device::Driver& driver, const std::string& architecture,
                               int index = 0) {
  const auto found = device::simulated_ordinal(driver, architecture, index);
  if (!found) throw std::runtime_error("no simulated device " + architecture);
  return *found;
}

}  // namespace annulus::test

#endif  // ANNULUS_SUPPORT_SIMULATOR_H_
