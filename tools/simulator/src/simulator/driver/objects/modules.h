#ifndef ANNULUS_SIMULATOR_DRIVER_OBJECTS_MODULES_H_
#define ANNULUS_SIMULATOR_DRIVER_OBJECTS_MODULES_H_

// What the entries of modules, of libraries and of links share: loading with the options of a
// program, and the handles of kernels.

#include <memory>
#include <string>
#include <string_view>

#include "simulator/driver/objects/image.h"
#include "simulator/driver/objects/state.h"

namespace annulus::simulator::driver {

// The options of a load, CUjit_option by CUjit_option. Only the logs are understood: the others
// choose how code for a GPU is made.
struct JitOptions {
  unsigned count = 0;
  int* names = nullptr;
  void** values = nullptr;

  bool valid() const { return count == 0 || (names != nullptr && values != nullptr); }
  // Writes into the buffers that the program gave, and their lengths into its options.
  void give_logs(const std::string& errors) const;
};

// Loads into the context and adds the handle. Throws Refusal; then the device's log and the
// program's buffer say why.
std::shared_ptr<Module> add_module(const std::shared_ptr<Context>& context, const Image& image,
                                   const JitOptions& options);

// The handle of a kernel, or null where the module has no such kernel. A kernel has one handle,
// however often it is asked for, so attributes that were set on it stay.
abi::CUfunction function_of(Module& module, std::string_view name);

// A module's variable; null: there is none of that name.
const GlobalVariable* variable_of(const LoadedModule& image, std::string_view name);

// Reads a file, or throws Refusal{kCudaFileNotFound}. The text ends in a NUL.
std::string read_image_file(const char* path);

// One CUfunction_attribute of a kernel on a device. Throws Refusal where there is no such one.
int function_attribute(const DeviceModel& model, const KernelInfo& info,
                       std::uint32_t dynamic_limit, int attribute);
// Whether the attribute may be set, and to this value; throws Refusal where not.
void check_function_attribute(const DeviceModel& model, const KernelInfo& info, int attribute,
                              int value);
std::uint32_t default_dynamic_limit(const KernelInfo& info);

// Where parameter `index` is in the parameter block. A null pointer asks for nothing.
abi::CUresult parameter_info(const KernelInfo& info, std::size_t index, std::size_t* offset,
                             std::size_t* bytes);

}  // namespace annulus::simulator::driver

#endif  // ANNULUS_SIMULATOR_DRIVER_OBJECTS_MODULES_H_
