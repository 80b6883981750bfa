#ifndef ANNULUS_SUPPORT_DEVICE_H_
#define ANNULUS_SUPPORT_DEVICE_H_

// The device on which the tests of a program run. It is the device that --device (or
// ANNULUS_DEVICE) names, or else a simulated one. The same program tests the simulator and a GPU.

#include <cstdlib>
#include <string>
#include <string_view>

namespace annulus::test {

inline std::string device_name() {
  const char* name = std::getenv("ANNULUS_DEVICE");
  return name && *name ? name : "sim:sm_80";
}

// Tests that inject faults or read counters do nothing if this is false.
inline bool on_simulator() { return std::string_view(device_name()).starts_with("sim:"); }

}  // namespace annulus::test

#endif  // ANNULUS_SUPPORT_DEVICE_H_
