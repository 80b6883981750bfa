#ifndef ANNULUS_DEVICE_DRIVER_H_
#define ANNULUS_DEVICE_DRIVER_H_

// An initialised CUDA driver: the function table and the library that it belongs to. All other
// objects in src/device hold a shared pointer to it, directly or through a Context.

#include <memory>
#include <string>

#include "abi/libraries.h"

namespace annulus::device {

class Driver {
 public:
  // Takes a driver from libcuda.so.1 or from the simulator. Throws Error{kDevice} if cuInit fails
  // (no GPU, no permission).
  explicit Driver(abi::CudaLibrary library);
  // Takes a table without a library, for example a table that a test created. `name` is for
  // messages.
  Driver(const abi::CudaTable& table, std::string name);

  const abi::CudaTable& table() const { return library_.table; }
  // the path of the library, or the name that was given
  const std::string& name() const { return name_; }
  int version() const { return version_; }  // 13000 is CUDA 13.0
  int device_count() const { return device_count_; }
  // Not 0 if devices are simulated. For reports only: the features of a device are read from its
  // attributes.
  int simulator_version() const { return simulator_version_; }

  // The driver's function with this name ("cuMemAlloc_v2"), or null.
  void* entry(const char* name) const;

 private:
  void initialise();

  abi::CudaLibrary library_;
  std::string name_;
  int version_ = 0;
  int device_count_ = 0;
  int simulator_version_ = 0;
};

using DriverPointer = std::shared_ptr<const Driver>;

}  // namespace annulus::device

#endif  // ANNULUS_DEVICE_DRIVER_H_
