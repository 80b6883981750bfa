#include "device/driver.h"

#include <utility>

#include "abi/check.h"

namespace annulus::device {

Driver::Driver(abi::CudaLibrary library)
    : library_(std::move(library)), name_(library_.report.path) {
  initialise();
}

Driver::Driver(const abi::CudaTable& table, std::string name) : name_(std::move(name)) {
  library_.table = table;
  initialise();
}

void Driver::initialise() {
  const abi::CudaTable& cuda = table();
  abi::check(cuda, cuda.init(0), "cuInit");
  abi::check(cuda, cuda.driver_get_version(&version_), "cuDriverGetVersion");
  abi::check(cuda, cuda.device_get_count(&device_count_), "cuDeviceGetCount");
  if (cuda.simulator_version != nullptr) {
    abi::check(cuda, cuda.simulator_version(&simulator_version_), "annulusSimulatorVersion");
  }
}

void* Driver::entry(const char* name) const {
  void* address = nullptr;
  if (table().simulator_entry != nullptr) {
    // The simulator's library exports only its own functions. The others are found by name.
    return table().simulator_entry(name, &address) == abi::kCudaSuccess ? address : nullptr;
  }
  return library_.library ? library_.library.symbol(name) : nullptr;
}

}  // namespace annulus::device
