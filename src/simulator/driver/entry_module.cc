// Modules and their kernels.

#include <algorithm>

#include "simulator/driver/entries.h"
#include "simulator/driver/image.h"
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
    LoadResult result = load_image(context, image);
    if (result.module == nullptr) {
      context->device->report(base::LogLevel::kWarning, "module", result.log);
      return result.code;
    }
    *module = state().modules.add(std::move(result.module));
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
    const KernelInfo* info = found->image->kernel(name);
    if (info == nullptr) return kCudaNotFound;
    // A kernel has one handle, however often it is asked for, so attributes that were set on it
    // stay.
    std::lock_guard lock(found->mutex);
    auto [at, added] = found->functions.try_emplace(name, nullptr);
    if (added) {
      auto made = std::make_shared<Function>();
      made->context = found->context;
      made->image = found->image;
      made->info = info;
      made->program = found->image->program(name);
      made->module = module;
      made->dynamic_limit = static_cast<std::uint32_t>(kSharedPerBlock) -
                            std::min<std::uint32_t>(kSharedPerBlock, info->static_shared_bytes);
      at->second = state().functions.add(std::move(made));
    }
    *function = at->second;
    return kCudaSuccess;
  });
}

CUresult module_get_global(CUdeviceptr* pointer, std::size_t* bytes, CUmodule module,
                           const char* name) {
  return guarded([&]() -> CUresult {
    const auto found = find_module(module);
    if (name == nullptr) return kCudaInvalidValue;
    for (const GlobalVariable& variable : found->image->variables()) {
      if (variable.name != name) continue;
      if (pointer != nullptr) *pointer = variable.address;
      if (bytes != nullptr) *bytes = variable.bytes;
      return kCudaSuccess;
    }
    return kCudaNotFound;
  });
}

CUresult func_get_attribute(int* value, int attribute, CUfunction function) {
  return guarded([&]() -> CUresult {
    const auto found = find_function(function);
    if (value == nullptr) return kCudaInvalidValue;
    const KernelInfo& info = *found->info;
    const DeviceModel& model = found->context->device->model();
    switch (attribute) {
      case kFunctionMaxThreadsPerBlock:
        *value = static_cast<int>(info.max_threads);
        break;
      case kFunctionSharedBytes:
        *value = static_cast<int>(info.static_shared_bytes);
        break;
      case kFunctionConstBytes:
        *value = 0;
        break;
      case kFunctionLocalBytes:
        *value = static_cast<int>(info.local_bytes);
        break;
      case kFunctionRegisters:
        *value = static_cast<int>(info.registers);
        break;
      case kFunctionPtxVersion:
      case kFunctionBinaryVersion:
        *value = 10 * model.major + model.minor;
        break;
      case kFunctionMaxDynamicSharedBytes:
        *value = static_cast<int>(found->dynamic_limit.load());
        break;
      case kFunctionSharedCarveout:
        *value = -1;
        break;  // no preference
      case kFunctionNonPortableCluster:
        *value = 0;
        break;
      default:
        return kCudaInvalidValue;
    }
    return kCudaSuccess;
  });
}

CUresult func_set_attribute(CUfunction function, int attribute, int value) {
  return guarded([&]() -> CUresult {
    const auto found = find_function(function);
    // A hint, and a permission for what is refused here anyhow (clusters of more than 8).
    if (attribute == kFunctionSharedCarveout || attribute == kFunctionNonPortableCluster) {
      return kCudaSuccess;
    }
    if (attribute != kFunctionMaxDynamicSharedBytes) return kCudaInvalidValue;
    const int most = found->context->device->model().shared_optin -
                     static_cast<int>(found->info->static_shared_bytes);
    if (value < 0 || value > most) return kCudaInvalidValue;
    found->dynamic_limit = static_cast<std::uint32_t>(value);
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
