#ifndef ANNULUS_SIMULATOR_DRIVER_OBJECTS_MODULES_H_
#define ANNULUS_SIMULATOR_DRIVER_OBJECTS_MODULES_H_

// Functions that the entries of modules, libraries and links share: loading with a program's
// options, and the handles of kernels.

#include <memory>
#include <string>
#include <string_view>

#include "simulator/driver/objects/image.h"
#include "simulator/driver/objects/state.h"

namespace annulus::simulator::driver {

// The options of a load, as pairs of CUjit_option and value. Only the options of logs have an
// effect; the others control how code for a GPU is generated.
struct JitOptions {
  unsigned count = 0;
  int* names = nullptr;
  void** values = nullptr;

  bool valid() const { return count == 0 || (names != nullptr && values != nullptr); }
  // Writes the logs into the program's buffers, and their lengths into its options.
  void give_logs(const std::string& errors) const;
};

// Loads the image into the context and adds the handle. If the load fails, it throws Refusal, and
// the device's log and the program's buffer have the reason.
std::shared_ptr<Module> add_module(const std::shared_ptr<Context>& context, const Image& image,
                                   const JitOptions& options);

// The handle of a kernel, or null if the module has no such kernel. Every lookup of a kernel
// returns the same handle, so attributes that were set on it stay.
abi::CUfunction function_of(Module& module, std::string_view name);

// A module's variable, or null if there is none of that name.
const GlobalVariable* variable_of(const LoadedModule& image, std::string_view name);

// Reads a file, or throws Refusal{kCudaFileNotFound}. The text ends in a NUL.
std::string read_image_file(const char* path);

// The value of a CUfunction_attribute for a kernel on a device. Throws Refusal if there is no such
// attribute.
int function_attribute(const DeviceModel& model, const KernelInfo& info,
                       std::uint32_t dynamic_limit, int attribute);
// Throws Refusal if the attribute may not be set, or not to this value.
void check_function_attribute(const DeviceModel& model, const KernelInfo& info, int attribute,
                              int value);
std::uint32_t default_dynamic_limit(const KernelInfo& info);

// Stores the offset and the size of parameter `index` in the parameter block. A null pointer is not
// written to.
abi::CUresult parameter_info(const KernelInfo& info, std::size_t index, std::size_t* offset,
                             std::size_t* bytes);

}  // namespace annulus::simulator::driver

#endif  // ANNULUS_SIMULATOR_DRIVER_OBJECTS_MODULES_H_
