#include "simulator/driver/objects/libraries.h"

#include "simulator/driver/objects/modules.h"

namespace annulus::simulator::driver {

namespace {

std::shared_ptr<Function> function_in(Module& module, const Kernel& kernel) {
  auto function = state().functions.find(function_of(module, kernel.info->name));
  if (function == nullptr) throw Refusal{abi::kCudaInvalidHandle};
  return function;
}

// Copies the attributes that were set on the kernels of a library to the functions of a module.
// Requires: library.mutex is held.
void take_limits(const Library& library, Module& module) {
  for (const auto& [name, handle] : library.kernels) {
    const auto kernel = state().kernels.find(handle);
    if (kernel == nullptr) continue;
    std::lock_guard lock(kernel->mutex);
    const auto limit = kernel->dynamic_limits.find(module.context->device);
    if (limit == kernel->dynamic_limits.end()) continue;
    function_in(module, *kernel)->dynamic_limit = limit->second;
  }
}

}  // namespace

std::shared_ptr<Module> module_in(Library& library, const std::shared_ptr<Context>& context) {
  std::lock_guard lock(library.mutex);
  std::erase_if(library.modules, [](const std::weak_ptr<Module>& one) { return one.expired(); });
  for (const std::weak_ptr<Module>& weak : library.modules) {
    const std::shared_ptr<Module> module = weak.lock();
    if (module != nullptr && module->context == context) return module;
  }
  auto module = add_module(context, library.image, {});
  library.modules.push_back(module);
  take_limits(library, *module);
  return module;
}

void set_dynamic_limit(Kernel& kernel, const Device& device, std::uint32_t bytes) {
  {
    std::lock_guard lock(kernel.mutex);
    kernel.dynamic_limits[&device] = bytes;
  }
  const auto library = kernel.library.lock();
  if (library == nullptr) return;
  std::lock_guard lock(library->mutex);
  for (const std::weak_ptr<Module>& weak : library->modules) {
    const auto module = weak.lock();
    if (module == nullptr || module->context->device != &device) continue;
    function_in(*module, kernel)->dynamic_limit = bytes;
  }
}

std::shared_ptr<Function> function_in_context(const std::shared_ptr<Kernel>& kernel) {
  const auto context = live_context();
  const auto library = kernel->library.lock();
  if (library == nullptr) throw Refusal{abi::kCudaInvalidHandle};
  return function_in(*module_in(*library, context), *kernel);
}

std::shared_ptr<Function> function_of_kernel(abi::CUfunction kernel) {
  const auto found = state().kernels.find(reinterpret_cast<CUkernel>(kernel));
  return found == nullptr ? nullptr : function_in_context(found);
}

}  // namespace annulus::simulator::driver
