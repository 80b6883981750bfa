#ifndef ANNULUS_SIMULATOR_DRIVER_OBJECTS_LIBRARIES_H_
#define ANNULUS_SIMULATOR_DRIVER_OBJECTS_LIBRARIES_H_

// Libraries and their kernels (cuLibraryLoadData): modules that belong to no context. A library is
// loaded into a context when something of it is first used there.

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "simulator/driver/objects/image.h"
#include "simulator/driver/objects/state.h"

namespace annulus::simulator::driver {

// A kernel of a library. Its attributes hold for a device, and are copied to the kernel's functions
// on that device.
struct Kernel {
  std::weak_ptr<Library> library;
  std::shared_ptr<LoadedModule> catalogue;  // keeps `info` alive
  const KernelInfo* info = nullptr;
  std::mutex mutex;                                       // guards the members below
  std::map<const Device*, std::uint32_t> dynamic_limits;  // only devices on which a limit was set
};

struct Library {
  Image image;
  // The kernels of the image, as loaded on the first device that could load it. The set of kernels
  // and their parameters are the same on all devices.
  std::shared_ptr<LoadedModule> catalogue;
  std::mutex mutex;                                      // guards the members below
  std::vector<std::weak_ptr<Module>> modules;            // at most one for each context
  std::map<std::string, CUkernel, std::less<>> kernels;  // only kernels that a program looked up

  CUlibrary handle() { return reinterpret_cast<CUlibrary>(this); }
};

// The module of the library in a context. The first call loads it. Throws Refusal.
std::shared_ptr<Module> module_in(Library& library, const std::shared_ptr<Context>& context);

// Allows the kernel this much dynamic shared memory on the device, in every context that has loaded
// the library or loads it later.
void set_dynamic_limit(Kernel& kernel, const Device& device, std::uint32_t bytes);

// The function of a kernel in the current context. Throws Refusal.
std::shared_ptr<Function> function_in_context(const std::shared_ptr<Kernel>& kernel);
// The function for a kernel's handle that was passed in place of a function's handle, or null if it
// is not the handle of a kernel.
std::shared_ptr<Function> function_of_kernel(abi::CUfunction kernel);

}  // namespace annulus::simulator::driver

#endif  // ANNULUS_SIMULATOR_DRIVER_OBJECTS_LIBRARIES_H_
