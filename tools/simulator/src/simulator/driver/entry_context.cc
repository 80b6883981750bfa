// Contexts, and which one is current on a thread.

#include "simulator/driver/entries.h"
#include "simulator/driver/state.h"

namespace annulus::simulator::driver::entry {

CUresult primary_ctx_retain(CUcontext* context, CUdevice device) {
  return guarded([&]() -> CUresult {
    if (context == nullptr) return kCudaInvalidValue;
    *context = device_at(device).retain_primary()->handle();
    return kCudaSuccess;
  });
}

CUresult primary_ctx_release(CUdevice device) {
  return guarded([&]() -> CUresult {
    return device_at(device).release_primary() ? kCudaSuccess : kCudaInvalidContext;
  });
}

CUresult ctx_push_current(CUcontext context) {
  return guarded([&]() -> CUresult {
    auto found = state().contexts.find(context);
    if (found == nullptr) return kCudaInvalidContext;
    context_stack().push_back(std::move(found));
    return kCudaSuccess;
  });
}

CUresult ctx_pop_current(CUcontext* context) {
  return guarded([&]() -> CUresult {
    auto& stack = context_stack();
    if (stack.empty()) return kCudaInvalidContext;
    if (context != nullptr) *context = stack.back() ? stack.back()->handle() : nullptr;
    stack.pop_back();
    return kCudaSuccess;
  });
}

CUresult ctx_get_current(CUcontext* context) {
  return guarded([&]() -> CUresult {
    if (context == nullptr) return kCudaInvalidValue;
    const auto& stack = context_stack();
    *context = stack.empty() || stack.back() == nullptr ? nullptr : stack.back()->handle();
    return kCudaSuccess;
  });
}

// Replaces the top of the stack; null leaves the thread without a context.
CUresult ctx_set_current(CUcontext context) {
  return guarded([&]() -> CUresult {
    std::shared_ptr<Context> found;
    if (context != nullptr) {
      found = state().contexts.find(context);
      if (found == nullptr) return kCudaInvalidContext;
    }
    auto& stack = context_stack();
    if (!stack.empty()) stack.pop_back();
    if (found != nullptr) stack.push_back(std::move(found));
    return kCudaSuccess;
  });
}

CUresult ctx_get_device(CUdevice* device) {
  return guarded([&]() -> CUresult {
    if (device == nullptr) return kCudaInvalidValue;
    *device = current_context()->device->ordinal();
    return kCudaSuccess;
  });
}

CUresult ctx_synchronize() {
  return guarded([&]() -> CUresult {
    refuse_under_capture();
    return synchronize(*current_context());
  });
}

}  // namespace annulus::simulator::driver::entry
