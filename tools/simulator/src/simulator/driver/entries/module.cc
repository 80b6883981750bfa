// Modules and their kernels.

#include <algorithm>

#include "simulator/driver/entries/entries.h"
#include "simulator/driver/objects/modules.h"
#include "simulator/driver/objects/occupancy.h"
#include "simulator/driver/objects/state.h"

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

CUresult module_load_data_ex(CUmodule* module, const void* image, unsigned count, int* options,
                             void** values) {
  return guarded([&]() -> CUresult {
    const auto context = live_context();
    if (module == nullptr || image == nullptr) return kCudaInvalidValue;
    const JitOptions jit{count, options, values};
    if (!jit.valid()) return kCudaInvalidValue;
    refuse_under_capture();
    *module = add_module(context, read_image(image), jit)->handle();
    return kCudaSuccess;
  });
}

CUresult module_load(CUmodule* module, const char* file) {
  return guarded([&]() -> CUresult {
    if (file == nullptr) return kCudaInvalidValue;
    return module_load_data(module, read_image_file(file).c_str());
  });
}

CUresult module_load_fat_binary(CUmodule* module, const void* image) {
  return module_load_data(module, image);
}

CUresult module_get_loading_mode(int* mode) {
  if (mode == nullptr) return kCudaInvalidValue;
  *mode = 1;  // eager
  return kCudaSuccess;
}

CUresult func_get_module(CUmodule* module, CUfunction function) {
  return guarded([&]() -> CUresult {
    if (module == nullptr) return kCudaInvalidValue;
    *module = find_function(function)->module;
    return kCudaSuccess;
  });
}

CUresult func_get_name(const char** name, CUfunction function) {
  return guarded([&]() -> CUresult {
    if (name == nullptr) return kCudaInvalidValue;
    *name = find_function(function)->info->name.c_str();
    return kCudaSuccess;
  });
}

CUresult func_set_cache_config(CUfunction function, int) {
  return guarded([&]() -> CUresult {
    find_function(function);
    return kCudaSuccess;
  });
}

CUresult func_set_shared_mem_config(CUfunction function, int) { return func_load(function); }

// Every function is loaded together with its module.
CUresult func_is_loaded(int* loaded, CUfunction function) {
  return guarded([&]() -> CUresult {
    find_function(function);
    if (loaded == nullptr) return kCudaInvalidValue;
    *loaded = kFunctionLoaded;
    return kCudaSuccess;
  });
}

CUresult func_load(CUfunction function) {
  return guarded([&]() -> CUresult {
    find_function(function);
    return kCudaSuccess;
  });
}

CUresult func_get_param_info(CUfunction function, std::size_t index, std::size_t* offset,
                             std::size_t* bytes) {
  return guarded([&]() -> CUresult {
    return parameter_info(*find_function(function)->info, index, offset, bytes);
  });
}

CUresult module_get_function_count(unsigned* count, CUmodule module) {
  return guarded([&]() -> CUresult {
    const auto found = state().modules.find(module);
    if (found == nullptr) return kCudaInvalidHandle;
    if (count == nullptr) return kCudaInvalidValue;
    *count = static_cast<unsigned>(found->image->kernels().size());
    return kCudaSuccess;
  });
}

CUresult module_enumerate_functions(CUfunction* functions, unsigned room, CUmodule module) {
  return guarded([&]() -> CUresult {
    const auto found = state().modules.find(module);
    if (found == nullptr) return kCudaInvalidHandle;
    if (functions == nullptr || room == 0) return kCudaInvalidValue;
    const std::vector<std::string_view> names = found->image->kernels();
    for (std::size_t i = 0; i < std::min<std::size_t>(room, names.size()); ++i) {
      functions[i] = function_of(*found, names[i]);
    }
    return kCudaSuccess;
  });
}

}  // namespace annulus::simulator::driver::entry
