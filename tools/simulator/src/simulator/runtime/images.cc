#include "simulator/runtime/images.h"

#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "simulator/runtime/thread.h"

namespace annulus::simulator::runtime {
namespace {

// Everything that the process registered. It is never destroyed, because nvcc's code unregisters in
// exit handlers.
struct Registry {
  std::mutex mutex;
  std::unordered_map<const void*, std::unique_ptr<Image>> images;
  std::unordered_map<const void*, Kernel*> kernels;  // by the address of the host code
  std::unordered_map<const void*, Variable> variables;
  std::unordered_set<const void*> handles;  // handles of all kernels
};
Registry& registry() {
  static auto* const only = new Registry;
  return *only;
}

// Modules may be loaded while a stream of this thread is under capture, because the captured call
// may be the launch that needs them.
class CaptureModeRelaxed {
 public:
  CaptureModeRelaxed() {
    if (driver().thread_exchange_capture_mode) driver().thread_exchange_capture_mode(&mode_);
  }
  ~CaptureModeRelaxed() {
    if (driver().thread_exchange_capture_mode) driver().thread_exchange_capture_mode(&mode_);
  }
  CaptureModeRelaxed(const CaptureModeRelaxed&) = delete;
  CaptureModeRelaxed& operator=(const CaptureModeRelaxed&) = delete;

 private:
  int mode_ = abi::kCaptureRelaxed;
};

}  // namespace

Image::Loaded& Image::load(CUcontext context) {
  Loaded& loaded = loaded_[context];
  if (loaded.module == nullptr && loaded.code == cudaSuccess) {
    const CaptureModeRelaxed relaxed;
    loaded.code = driver().module_load_data(&loaded.module, code_);
  }
  need(loaded.code);
  return loaded;
}

CUmodule Image::module(CUcontext context) {
  std::lock_guard lock(mutex_);
  return load(context).module;
}

CUfunction Image::function(CUcontext context, const std::string& name) {
  std::lock_guard lock(mutex_);
  Loaded& loaded = load(context);
  CUfunction& function = loaded.functions[name];
  if (function == nullptr) {
    const CUresult code = driver().module_get_function(&function, loaded.module, name.c_str());
    if (code == cudaErrorSymbolNotFound) throw Refusal{cudaErrorInvalidDeviceFunction};
    need(code);
  }
  return function;
}

void* Image::variable(CUcontext context, const std::string& name, std::size_t* bytes,
                      Error absent) {
  CUdeviceptr pointer = 0;
  std::size_t size = 0;
  const CUresult code = driver().module_get_global(&pointer, &size, module(context), name.c_str());
  if (code == cudaErrorSymbolNotFound) throw Refusal{absent};
  need(code);
  if (bytes != nullptr) *bytes = size;
  return reinterpret_cast<void*>(pointer);
}

Kernel* Image::kernel(const std::string& name) {
  std::lock_guard lock(mutex_);
  Kernel*& kernel = kernels_[name];
  if (kernel == nullptr) {
    kernel = new Kernel{this, name};
    std::lock_guard registry_lock(registry().mutex);
    registry().handles.insert(kernel);
  }
  return kernel;
}

const std::string* Image::name_of(CUfunction function) {
  std::lock_guard lock(mutex_);
  for (const auto& [context, loaded] : loaded_) {
    for (const auto& [name, one] : loaded.functions) {
      if (one == function) return &name;
    }
  }
  return nullptr;
}

void Image::forget(CUcontext context) {
  std::lock_guard lock(mutex_);
  loaded_.erase(context);
}

// At the end of the process the driver or its contexts may no longer exist. That does no harm.
void Image::unload() {
  std::lock_guard lock(mutex_);
  for (const auto& [name, kernel] : kernels_) kernel->image = nullptr;
  for (const auto& [context, loaded] : loaded_) {
    if (loaded.module == nullptr) continue;
    if (driver().ctx_push_current(context) != cudaSuccess) continue;
    driver().module_unload(loaded.module);
    CUcontext popped = nullptr;
    driver().ctx_pop_current(&popped);
  }
  loaded_.clear();
}

void Image::add_managed(void** host, const char* name) {
  std::lock_guard lock(mutex_);
  managed_.push_back({host, name});
}

void Image::place_managed(CUcontext context) {
  const std::lock_guard lock(placing_);
  if (placed_) return;
  for (const Managed& one : managed_) {
    std::size_t bytes = 0;
    *one.host = variable(context, one.name, &bytes, cudaErrorInvalidSymbol);
    // The address of a variable is also its symbol.
    add_variable(*one.host, {this, one.name, bytes});
  }
  placed_ = true;
}

Image* add_image(std::unique_ptr<Image> image) {
  Image* const added = image.get();
  std::lock_guard lock(registry().mutex);
  registry().images.emplace(added, std::move(image));
  return added;
}

Image* find_image(const void* handle) {
  std::lock_guard lock(registry().mutex);
  const auto found = registry().images.find(handle);
  return found == registry().images.end() ? nullptr : found->second.get();
}

void remove_image(Image* image) {
  std::unique_ptr<Image> removed;
  {
    std::lock_guard lock(registry().mutex);
    Registry& all = registry();
    const auto found = all.images.find(image);
    if (found == all.images.end()) return;
    removed = std::move(found->second);
    all.images.erase(found);
    std::erase_if(all.kernels, [&](const auto& one) { return one.second->image == image; });
    std::erase_if(all.variables, [&](const auto& one) { return one.second.image == image; });
  }
  removed->unload();
}

void add_kernel(const void* host, Kernel* kernel) {
  std::lock_guard lock(registry().mutex);
  registry().kernels[host] = kernel;
}

void add_variable(const void* host, Variable variable) {
  std::lock_guard lock(registry().mutex);
  registry().variables[host] = std::move(variable);
}

Kernel& find_kernel(const void* function) {
  std::lock_guard lock(registry().mutex);
  const Registry& all = registry();
  Kernel* kernel = nullptr;
  if (const auto found = all.kernels.find(function); found != all.kernels.end()) {
    kernel = found->second;
  } else if (all.handles.contains(function)) {
    kernel = const_cast<Kernel*>(static_cast<const Kernel*>(function));
  }
  if (kernel == nullptr || kernel->image == nullptr) {
    throw Refusal{cudaErrorInvalidDeviceFunction};
  }
  return *kernel;
}

CUfunction function_of(const void* function) {
  const Kernel& kernel = find_kernel(function);
  return kernel.image->function(enter(), kernel.name);
}

const void* host_function_of(CUfunction function) {
  std::lock_guard lock(registry().mutex);
  for (const auto& [host, kernel] : registry().kernels) {
    const std::string* const name = kernel->image->name_of(function);
    if (name != nullptr && *name == kernel->name) return host;
  }
  throw Refusal{cudaErrorInvalidDeviceFunction};
}

char* address_of(const void* symbol, std::size_t* bytes) {
  Variable variable;
  {
    std::lock_guard lock(registry().mutex);
    const auto found = registry().variables.find(symbol);
    if (found == registry().variables.end()) throw Refusal{cudaErrorInvalidSymbol};
    variable = found->second;
  }
  return static_cast<char*>(
      variable.image->variable(enter(), variable.name, bytes, cudaErrorInvalidSymbol));
}

void forget_modules(CUcontext context) {
  std::lock_guard lock(registry().mutex);
  for (const auto& [handle, image] : registry().images) image->forget(context);
}

}  // namespace annulus::simulator::runtime
