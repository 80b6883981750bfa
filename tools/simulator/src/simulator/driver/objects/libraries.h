#ifndef ANNULUS_SIMULATOR_DRIVER_OBJECTS_LIBRARIES_H_
#define ANNULUS_SIMULATOR_DRIVER_OBJECTS_LIBRARIES_H_

// Libraries and kernels (cuLibraryLoadData): modules that belong to no context. A library is loaded
// into a context when something of it is first used there.

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "simulator/driver/objects/image.h"
#include "simulator/driver/objects/state.h"

namespace annulus::simulator::driver {

// A kernel of a library. Its attributes are those of a device, and go to its functions there.
struct Kernel {
  std::weak_ptr<Library> library;
  std::shared_ptr<LoadedModule> catalogue;  // keeps `info` alive
  const KernelInfo* info = nullptr;
  std::mutex mutex;                                       // guards below
  std::map<const Device*, std::uint32_t> dynamic_limits;  // where one was set
};

struct Library {
  Image image;
  // The kernels of the image, as loaded on the first device that could: which there are and what
  // parameters they take is the same on all.
  std::shared_ptr<LoadedModule> catalogue;
  std::mutex mutex;                                      // guards below
  std::vector<std::weak_ptr<Module>> modules;            // at most one for each context
  std::map<std::string, CUkernel, std::less<>> kernels;  // of all kernels that were asked for

  CUlibrary handle() { return reinterpret_cast<CUlibrary>(this); }
};

// The module of the library in a context, loaded by the first call. Throws Refusal.
std::shared_ptr<Module> module_in(Library& library, const std::shared_ptr<Context>& context);

// The kernel may have this much dynamic shared memory on the device, wherever the library is or
// will be loaded.
void set_dynamic_limit(Kernel& kernel, const Device& device, std::uint32_t bytes);

// The function that a kernel is in the current context. Throws Refusal.
std::shared_ptr<Function> function_in_context(const std::shared_ptr<Kernel>& kernel);
// The same for a kernel's handle that was given as a function's; null where it is none.
std::shared_ptr<Function> function_of_kernel(abi::CUfunction kernel);

}  // namespace annulus::simulator::driver

#endif  // ANNULUS_SIMULATOR_DRIVER_OBJECTS_LIBRARIES_H_
