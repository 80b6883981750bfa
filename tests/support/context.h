#ifndef ANNULUS_SUPPORT_CONTEXT_H_
#define ANNULUS_SUPPORT_CONTEXT_H_

// A context on the device that the test program was told to use (support/device.h), for tests of
// rooms below the facade.

#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>

#include "base/env.h"
#include "device/context.h"
#include "sim/driver.h"
#include "support/device.h"

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
  const int first = sim::first_ordinal(rest.substr(0, colon).c_str());
  if (first < 0) throw std::runtime_error("no device " + name);
  const int index = colon == rest.npos ? 0 : std::atoi(rest.c_str() + colon + 1);
  auto driver = std::make_shared<device::Driver>(sim::make_cuda_table(), "the built-in simulator");
  return device::Context::retain(driver, first + index);
}

}  // namespace annulus::test

#endif  // ANNULUS_SUPPORT_CONTEXT_H_
