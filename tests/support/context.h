#ifndef ANNULUS_SUPPORT_CONTEXT_H_
#define ANNULUS_SUPPORT_CONTEXT_H_

// A context on the device that the test program uses (support/device.h), for tests of rooms below
// the API.

#include <cstdlib>
#include <memory>
#include <string>

#include "base/env.h"
#include "device/context.h"
#include "support/device.h"
#include "support/simulator.h"

namespace annulus::test {

inline device::ContextPointer open_context(const std::string& name = device_name()) {
  if (name.starts_with("cuda:")) {
    auto driver = std::make_shared<device::Driver>(
        abi::open_cuda(abi::default_search(base::read_environment())));
    return device::Context::retain(driver, std::atoi(name.c_str() + 5));
  }
  // "sim:sm_80" or "sim:sm_80:3"
  const std::string rest = name.substr(name.find(':') + 1);
  const std::size_t colon = rest.find(':');
  const int index = colon == rest.npos ? 0 : std::atoi(rest.c_str() + colon + 1);
  const device::DriverPointer driver = simulator_driver();
  return device::Context::retain(driver,
                                 number_of_simulated(*driver, rest.substr(0, colon), index));
}

}  // namespace annulus::test

#endif  // ANNULUS_SUPPORT_CONTEXT_H_
