// Functions of modules that only other programs use (provided.def).

#include <algorithm>

#include "simulator/driver/entries.h"
#include "simulator/driver/modules.h"

namespace annulus::simulator::driver::entry {

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

// Every function is loaded with its module.
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
