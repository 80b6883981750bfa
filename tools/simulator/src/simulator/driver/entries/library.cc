// Libraries and kernels, which belong to no context.

#include <algorithm>

#include "simulator/driver/entries/entries.h"
#include "simulator/driver/objects/libraries.h"
#include "simulator/driver/objects/modules.h"

namespace annulus::simulator::driver::entry {
namespace {

std::shared_ptr<Library> find_library(CUlibrary library) {
  auto found = state().libraries.find(library);
  if (found == nullptr) throw Refusal{kCudaInvalidHandle};
  return found;
}

std::shared_ptr<Kernel> find_kernel(CUkernel kernel) {
  auto found = state().kernels.find(kernel);
  if (found == nullptr) throw Refusal{kCudaInvalidHandle};
  return found;
}

// CUlibraryOption. Both options concern the lifetime of the program's own tables and image.
enum : int { kHostTable = 0, kBinaryIsPreserved = 1 };

// The context into which a library is loaded first, or null. A library can be loaded without a
// context.
std::shared_ptr<Context> context_or_null() {
  const auto& stack = context_stack();
  return stack.empty() || stack.back() == nullptr || stack.back()->lost != kCudaSuccess
             ? nullptr
             : stack.back();
}

// Loads the image on a device that can run it. If no device can, the function throws the error of
// the first one.
std::shared_ptr<LoadedModule> load_anywhere(const Image& image, const JitOptions& jit) {
  LoadResult first;
  for (const auto& device : state().devices) {
    LoadResult result = load_image(*device, image);
    if (result.loaded != nullptr) {
      jit.give_logs({});
      return std::move(result.loaded);
    }
    const bool for_another = result.code == kCudaNoBinaryForGpu;
    if (first.code == kCudaSuccess || !for_another) first = std::move(result);
    if (!for_another) break;  // the image is for this device, but has an error
  }
  jit.give_logs(first.log);
  if (state().devices.empty()) throw Refusal{kCudaNoDevice};
  state().devices.front()->report(base::LogLevel::kWarning, "module", first.log);
  throw Refusal{first.code};
}

CUresult load(CUlibrary* library, const void* code, const JitOptions& jit, const int* options,
              unsigned count) {
  if (library == nullptr || code == nullptr || !jit.valid()) return kCudaInvalidValue;
  if (count != 0 && options == nullptr) return kCudaInvalidValue;
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] != kHostTable && options[i] != kBinaryIsPreserved) return kCudaInvalidValue;
  }
  auto made = std::make_shared<Library>();
  made->image = read_image(code);
  if (const auto context = context_or_null();
      context != nullptr && fits(context->device->model(), made->image)) {
    const auto module = add_module(context, made->image, jit);
    made->catalogue = module->image;
    made->modules.push_back(module);
  } else {
    made->catalogue = load_anywhere(made->image, jit);
  }
  *library = state().libraries.add(std::move(made));
  return kCudaSuccess;
}

// The handle of a kernel of the library, or null if the library has none of that name.
CUkernel kernel_of(const std::shared_ptr<Library>& library, std::string_view name) {
  const KernelInfo* info = library->catalogue->kernel(name);
  if (info == nullptr) return nullptr;
  std::lock_guard lock(library->mutex);
  const auto [at, added] = library->kernels.try_emplace(std::string(name), nullptr);
  if (added) {
    auto made = std::make_shared<Kernel>();
    made->library = library;
    made->catalogue = library->catalogue;
    made->info = info;
    at->second = state().kernels.add(std::move(made));
  }
  return at->second;
}

std::uint32_t dynamic_limit(Kernel& kernel, const Device& device) {
  std::lock_guard lock(kernel.mutex);
  const auto found = kernel.dynamic_limits.find(&device);
  return found != kernel.dynamic_limits.end() ? found->second : default_dynamic_limit(*kernel.info);
}

}  // namespace

CUresult library_load_data(CUlibrary* library, const void* code, int* jit_options,
                           void** jit_values, unsigned jit_count, int* options, void**,
                           unsigned count) {
  return guarded([&]() -> CUresult {
    return load(library, code, {jit_count, jit_options, jit_values}, options, count);
  });
}

CUresult library_load_from_file(CUlibrary* library, const char* file, int* jit_options,
                                void** jit_values, unsigned jit_count, int* options, void**,
                                unsigned count) {
  return guarded([&]() -> CUresult {
    if (file == nullptr) return kCudaInvalidValue;
    const std::string image = read_image_file(file);
    return load(library, image.c_str(), {jit_count, jit_options, jit_values}, options, count);
  });
}

// Work that uses the library ends first.
CUresult library_unload(CUlibrary library) {
  return guarded([&]() -> CUresult {
    const auto found = find_library(library);
    std::vector<std::weak_ptr<Module>> modules;
    {
      std::lock_guard lock(found->mutex);
      modules = found->modules;
    }
    for (const std::weak_ptr<Module>& weak : modules) {
      const auto module = weak.lock();
      if (module == nullptr) continue;
      finish(*module->context);
      state().modules.remove(module->handle());
      state().functions.remove_if(
          [&](const Function& one) { return one.module == module->handle(); });
    }
    state().kernels.remove_if([&](const Kernel& one) { return one.library.lock() == found; });
    state().libraries.remove(library);
    return kCudaSuccess;
  });
}

CUresult library_get_kernel(CUkernel* kernel, CUlibrary library, const char* name) {
  return guarded([&]() -> CUresult {
    const auto found = find_library(library);
    if (kernel == nullptr || name == nullptr) return kCudaInvalidValue;
    *kernel = kernel_of(found, name);
    return *kernel == nullptr ? kCudaNotFound : kCudaSuccess;
  });
}

CUresult library_get_kernel_count(unsigned* count, CUlibrary library) {
  return guarded([&]() -> CUresult {
    const auto found = find_library(library);
    if (count == nullptr) return kCudaInvalidValue;
    *count = static_cast<unsigned>(found->catalogue->kernels().size());
    return kCudaSuccess;
  });
}

CUresult library_enumerate_kernels(CUkernel* kernels, unsigned room, CUlibrary library) {
  return guarded([&]() -> CUresult {
    const auto found = find_library(library);
    if (kernels == nullptr || room == 0) return kCudaInvalidValue;
    const std::vector<std::string_view> names = found->catalogue->kernels();
    for (std::size_t i = 0; i < std::min<std::size_t>(room, names.size()); ++i) {
      kernels[i] = kernel_of(found, names[i]);
    }
    return kCudaSuccess;
  });
}

CUresult library_get_module(CUmodule* module, CUlibrary library) {
  return guarded([&]() -> CUresult {
    const auto found = find_library(library);
    if (module == nullptr) return kCudaInvalidValue;
    *module = module_in(*found, live_context())->handle();
    return kCudaSuccess;
  });
}

CUresult library_get_global(CUdeviceptr* pointer, std::size_t* bytes, CUlibrary library,
                            const char* name) {
  return guarded([&]() -> CUresult {
    const auto found = find_library(library);
    if (name == nullptr) return kCudaInvalidValue;
    return module_get_global(pointer, bytes, module_in(*found, live_context())->handle(), name);
  });
}

// No variable counts as managed, not even one with the attribute .managed. Variables of modules are
// device memory, which the host may use as well.
CUresult library_get_managed(CUdeviceptr*, std::size_t*, CUlibrary library, const char* name) {
  return guarded([&]() -> CUresult {
    find_library(library);
    return name == nullptr ? kCudaInvalidValue : kCudaNotFound;
  });
}

CUresult kernel_get_function(CUfunction* function, CUkernel kernel) {
  return guarded([&]() -> CUresult {
    const auto found = find_kernel(kernel);
    if (function == nullptr) return kCudaInvalidValue;
    *function = reinterpret_cast<CUfunction>(function_in_context(found).get());
    return kCudaSuccess;
  });
}

CUresult kernel_get_library(CUlibrary* library, CUkernel kernel) {
  return guarded([&]() -> CUresult {
    const auto found = find_kernel(kernel);
    if (library == nullptr) return kCudaInvalidValue;
    const auto owner = found->library.lock();
    if (owner == nullptr) return kCudaInvalidHandle;
    *library = owner->handle();
    return kCudaSuccess;
  });
}

CUresult kernel_get_name(const char** name, CUkernel kernel) {
  return guarded([&]() -> CUresult {
    const auto found = find_kernel(kernel);
    if (name == nullptr) return kCudaInvalidValue;
    *name = found->info->name.c_str();
    return kCudaSuccess;
  });
}

CUresult kernel_get_param_info(CUkernel kernel, std::size_t index, std::size_t* offset,
                               std::size_t* bytes) {
  return guarded([&]() -> CUresult {
    return parameter_info(*find_kernel(kernel)->info, index, offset, bytes);
  });
}

CUresult kernel_get_attribute(int* value, int attribute, CUkernel kernel, CUdevice device) {
  return guarded([&]() -> CUresult {
    const auto found = find_kernel(kernel);
    const Device& at = device_at(device);
    if (value == nullptr) return kCudaInvalidValue;
    *value = function_attribute(at.model(), *found->info, dynamic_limit(*found, at), attribute);
    return kCudaSuccess;
  });
}

CUresult kernel_set_attribute(int attribute, int value, CUkernel kernel, CUdevice device) {
  return guarded([&]() -> CUresult {
    const auto found = find_kernel(kernel);
    const Device& at = device_at(device);
    check_function_attribute(at.model(), *found->info, attribute, value);
    if (attribute == kFunctionMaxDynamicSharedBytes) {
      set_dynamic_limit(*found, at, static_cast<std::uint32_t>(value));
    }
    return kCudaSuccess;
  });
}

CUresult kernel_set_cache_config(CUkernel kernel, int, CUdevice device) {
  return guarded([&]() -> CUresult {
    find_kernel(kernel);
    device_at(device);
    return kCudaSuccess;
  });
}

}  // namespace annulus::simulator::driver::entry
