// Modules and their kernels.

#include "simulator/driver/entries.h"
#include "simulator/driver/modules.h"
#include "simulator/driver/occupancy.h"
#include "simulator/driver/state.h"

namespace annulus::simulator::driver::entry {
namespace {

std::shared_ptr<Module> find_module(CUmodule module) {
  live_context();
  auto found = state().modules.find(module);
  if (found == nullptr) throw Refusal{kCudaInvalidHandle};
  return found;
}

}  // namespace

CUresult module_load_data(CUmodule* module, const void* image) {
  return guarded([&]() -> CUresult {
    const auto context = live_context();
    if (module == nullptr || image == nullptr) return kCudaInvalidValue;
    refuse_under_capture();
    *module = add_module(context, read_image(image), {})->handle();
    return kCudaSuccess;
  });
}

CUresult module_unload(CUmodule module) {
  return guarded([&]() -> CUresult {
    const auto context = current_context();
    finish(*context);
    const auto found = state().modules.remove(module);
    if (found == nullptr) return kCudaInvalidHandle;
    state().functions.remove_if([&](const Function& one) { return one.module == module; });
    return context->lost;
  });
}

CUresult module_get_function(CUfunction* function, CUmodule module, const char* name) {
  return guarded([&]() -> CUresult {
    const auto found = find_module(module);
    if (function == nullptr || name == nullptr) return kCudaInvalidValue;
    *function = function_of(*found, name);
    return *function == nullptr ? kCudaNotFound : kCudaSuccess;
  });
}

CUresult module_get_global(CUdeviceptr* pointer, std::size_t* bytes, CUmodule module,
                           const char* name) {
  return guarded([&]() -> CUresult {
    const auto found = find_module(module);
    if (name == nullptr) return kCudaInvalidValue;
    const GlobalVariable* variable = variable_of(*found->image, name);
    if (variable == nullptr) return kCudaNotFound;
    if (pointer != nullptr) *pointer = variable->address;
    if (bytes != nullptr) *bytes = variable->bytes;
    return kCudaSuccess;
  });
}

CUresult func_get_attribute(int* value, int attribute, CUfunction function) {
  return guarded([&]() -> CUresult {
    const auto found = find_function(function);
    if (value == nullptr) return kCudaInvalidValue;
    *value = function_attribute(found->context->device->model(), *found->info, found->dynamic_limit,
                                attribute);
    return kCudaSuccess;
  });
}

CUresult func_set_attribute(CUfunction function, int attribute, int value) {
  return guarded([&]() -> CUresult {
    const auto found = find_function(function);
    check_function_attribute(found->context->device->model(), *found->info, attribute, value);
    if (attribute == kFunctionMaxDynamicSharedBytes) {
      found->dynamic_limit = static_cast<std::uint32_t>(value);
    }
    return kCudaSuccess;
  });
}

CUresult occupancy_max_active_blocks(int* blocks, CUfunction function, int threads,
                                     std::size_t dynamic_shared_bytes) {
  return guarded([&]() -> CUresult {
    const auto found = find_function(function);
    if (blocks == nullptr || threads <= 0) return kCudaInvalidValue;
    *blocks = threads > static_cast<int>(found->info->max_threads)
                  ? 0
                  : blocks_per_sm(found->context->device->model(), *found->info,
                                  static_cast<std::uint32_t>(threads), dynamic_shared_bytes);
    return kCudaSuccess;
  });
}

}  // namespace annulus::simulator::driver::entry
