// Contexts, and which context is current on a thread.

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "simulator/driver/entries/absent.h"
#include "simulator/driver/entries/entries.h"
#include "simulator/driver/objects/state.h"

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

CUresult ctx_create(CUcontext* context, unsigned flags, CUdevice device) {
  return guarded([&]() -> CUresult {
    if (context == nullptr) return kCudaInvalidValue;
    auto made = make_context(device_at(device), false);
    made->flags = flags;
    *context = made->handle();
    context_stack().push_back(std::move(made));
    return kCudaSuccess;
  });
}

// The parameters are for sharing a GPU between processes and with graphics, which is not modelled.
// A struct that requests neither is accepted and has no effect.
CUresult ctx_create_with_params(CUcontext* context, ContextParameters* parameters, unsigned flags,
                                CUdevice device) {
  const bool asks =
      parameters != nullptr && (parameters->affinity_count != 0 || parameters->graphics != nullptr);
  if (asks) return kCudaNotSupported;
  return ctx_create(context, flags, device);
}

// The affinities are for sharing a GPU too, so any affinity is refused.
CUresult ctx_create_with_affinity(CUcontext* context, void*, int count, unsigned flags,
                                  CUdevice device) {
  if (count != 0) return kCudaNotSupported;
  return ctx_create(context, flags, device);
}

// The functions of CUDA 13 that take a context; null means the current context.
CUresult ctx_get_device_of(CUdevice* device, CUcontext context) {
  return guarded([&]() -> CUresult {
    const auto found = context == nullptr ? current_context() : state().contexts.find(context);
    if (found == nullptr) return kCudaInvalidContext;
    if (device == nullptr) return kCudaInvalidValue;
    *device = found->device->ordinal();
    return kCudaSuccess;
  });
}

CUresult ctx_synchronize_other(CUcontext context) {
  return guarded([&]() -> CUresult {
    const auto found = context == nullptr ? current_context() : state().contexts.find(context);
    if (found == nullptr) return kCudaInvalidContext;
    refuse_under_capture();
    return synchronize(*found);
  });
}

CUresult ctx_destroy(CUcontext context) {
  return guarded([&]() -> CUresult {
    const auto found = state().contexts.find(context);
    if (found == nullptr || found->primary) return kCudaInvalidContext;
    auto& stack = context_stack();
    if (!stack.empty() && stack.back() == found) stack.pop_back();
    destroy_context(found);
    return kCudaSuccess;
  });
}

// Two functions that are older than the stack of contexts. They count the uses of a context.
CUresult ctx_attach(CUcontext* context, unsigned flags) {
  return guarded([&]() -> CUresult {
    const auto found = live_context();
    if (context == nullptr || flags != 0) return kCudaInvalidValue;
    ++found->uses;
    *context = found->handle();
    return kCudaSuccess;
  });
}

CUresult ctx_detach(CUcontext context) {
  return guarded([&]() -> CUresult {
    const auto found = state().contexts.find(context);
    if (found == nullptr || found->primary) return kCudaInvalidContext;
    return --found->uses == 0 ? ctx_destroy(context) : kCudaSuccess;
  });
}

CUresult ctx_get_api_version(CUcontext, unsigned* version) {
  if (version == nullptr) return kCudaInvalidValue;
  *version = 3020;  // CUDA returns this value since contexts last changed
  return kCudaSuccess;
}

CUresult ctx_get_flags(unsigned* flags) {
  return guarded([&]() -> CUresult {
    const auto context = current_context();
    if (flags == nullptr) return kCudaInvalidValue;
    *flags = context->flags;
    return kCudaSuccess;
  });
}

// The flags choose how the host waits, which has no effect here.
CUresult ctx_set_flags(unsigned flags) {
  return guarded([&]() -> CUresult {
    current_context()->flags = flags;
    return kCudaSuccess;
  });
}

CUresult ctx_get_id(CUcontext context, unsigned long long* id) {
  return guarded([&]() -> CUresult {
    const auto found = context == nullptr ? current_context() : state().contexts.find(context);
    if (found == nullptr) return kCudaContextDestroyed;
    if (id == nullptr) return kCudaInvalidValue;
    *id = found->id;
    return kCudaSuccess;
  });
}

// Shared memory always has banks of four bytes (CUsharedconfig), whatever the program sets.
CUresult ctx_get_shared_mem_config(int* config) {
  return guarded([&]() -> CUresult {
    current_context();
    if (config == nullptr) return kCudaInvalidValue;
    *config = 1;
    return kCudaSuccess;
  });
}

CUresult ctx_set_shared_mem_config(int) {
  return guarded([&]() -> CUresult {
    current_context();
    return kCudaSuccess;
  });
}

// The simulated cache has no persisting lines, so there is nothing to reset.
CUresult ctx_reset_persisting_l2_cache() {
  return guarded([&]() -> CUresult {
    current_context();
    return kCudaSuccess;
  });
}

CUresult ctx_get_limit(std::size_t* value, int limit) {
  return guarded([&]() -> CUresult {
    const auto context = current_context();
    if (value == nullptr || limit < 0 || limit > 6) return kCudaInvalidValue;
    *value = limit == kLimitHeapBytes ? context->heap_bytes.load() : 0;
    return kCudaSuccess;
  });
}

// The limit of the heap is stored. Other limits are accepted and ignored; for example, stacks have
// no size here that could be too small.
CUresult ctx_set_limit(int limit, std::size_t value) {
  return guarded([&]() -> CUresult {
    const auto context = current_context();
    if (limit == kLimitHeapBytes) context->heap_bytes = value;
    return limit < 0 || limit > 6 ? kCudaInvalidValue : kCudaSuccess;
  });
}

CUresult ctx_get_cache_config(int* config) {
  return guarded([&]() -> CUresult {
    current_context();
    if (config == nullptr) return kCudaInvalidValue;
    *config = 0;
    return kCudaSuccess;
  });
}

CUresult ctx_set_cache_config(int) {
  return guarded([&]() -> CUresult {
    current_context();
    return kCudaSuccess;
  });
}

CUresult ctx_get_stream_priority_range(int* least, int* greatest) {
  return guarded([&]() -> CUresult {
    current_context();
    if (least != nullptr) *least = 0;
    if (greatest != nullptr) *greatest = 0;
    return kCudaSuccess;
  });
}

CUresult primary_ctx_get_state(CUdevice device, unsigned* flags, int* active) {
  return guarded([&]() -> CUresult {
    const Device& at = device_at(device);
    if (flags != nullptr) *flags = 0;
    if (active != nullptr) *active = at.primary_active() ? 1 : 0;
    return kCudaSuccess;
  });
}

CUresult primary_ctx_set_flags(CUdevice device, unsigned) {
  return guarded([&]() -> CUresult {
    device_at(device);
    return kCudaSuccess;
  });
}

CUresult primary_ctx_reset(CUdevice device) {
  return guarded([&]() -> CUresult {
    device_at(device).reset_primary();
    return kCudaSuccess;
  });
}

CUresult device_compute_capability(int* major, int* minor, CUdevice device) {
  return guarded([&]() -> CUresult {
    const Device& at = device_at(device);
    if (major == nullptr || minor == nullptr) return kCudaInvalidValue;
    *major = at.model().major;
    *minor = at.model().minor;
    return kCudaSuccess;
  });
}

// The UUID is "AnnulusSimulator" with the ordinal in the last byte.
CUresult device_get_uuid(Uuid* uuid, CUdevice device) {
  return guarded([&]() -> CUresult {
    const Device& at = device_at(device);
    if (uuid == nullptr) return kCudaInvalidValue;
    std::memcpy(uuid->bytes, "AnnulusSimulator", sizeof(uuid->bytes));
    uuid->bytes[15] = static_cast<unsigned char>(at.ordinal());
    return kCudaSuccess;
  });
}

CUresult device_get_pci_bus_id(char* text, int bytes, CUdevice device) {
  return guarded([&]() -> CUresult {
    const Device& at = device_at(device);
    if (text == nullptr || bytes <= 0) return kCudaInvalidValue;
    const std::string id = fmt::format("0000:{:02x}:00.0", at.ordinal() + 1);
    const std::size_t length = std::min(id.size(), static_cast<std::size_t>(bytes) - 1);
    std::memcpy(text, id.data(), length);
    text[length] = '\0';
    return kCudaSuccess;
  });
}

// CUDA's function returns undocumented tables of functions that NVIDIA's libraries share. There are
// no such tables here. NVRTC calls this function in any loaded libcuda.so.1, to keep its compiler's
// cache in such a table, and works without the table; but if the function were missing, NVRTC would
// follow a null pointer. NVIDIA's runtime does not start without the table whose number is here.
CUresult get_export_table(const void** table, const Uuid* id) {
  static constexpr unsigned char kOfRuntime[16] = {0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a,
                                                   0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d, 0xf9};
  static std::atomic<bool> logged;
  return guarded([&]() -> CUresult {
    if (table != nullptr) *table = nullptr;
    const bool runtime = id != nullptr && std::memcmp(id->bytes, kOfRuntime, 16) == 0;
    if (runtime && !logged.exchange(true)) {
      absent::log_warning(
          "NVIDIA's CUDA runtime does not run on the simulated driver, as it calls functions that "
          "NVIDIA does not document; compile the program with nvcc -cudart shared, so that it "
          "finds the simulator's libcudart.so.13 (docs/simulator.md, The CUDA runtime)");
    }
    return kCudaNotFound;
  });
}

CUresult profiler_start() { return kCudaSuccess; }
CUresult profiler_stop() { return kCudaSuccess; }

// CUdevice_P2PAttribute: rank, access, atomics, arrays. All peers have the same rank.
CUresult device_get_p2p_attribute(int* value, int attribute, CUdevice device, CUdevice peer) {
  return guarded([&]() -> CUresult {
    int can = 0;
    const CUresult code = device_can_access_peer(&can, device, peer);
    if (code != kCudaSuccess) return code;
    if (value == nullptr || attribute < 1 || attribute > 5) return kCudaInvalidValue;
    *value = attribute == 2 || attribute == 3 ? can : 0;
    return kCudaSuccess;
  });
}

CUresult device_get_by_pci_bus_id(CUdevice* device, const char* text) {
  return guarded([&]() -> CUresult {
    if (device == nullptr || text == nullptr) return kCudaInvalidValue;
    for (const auto& one : state().devices) {
      char own[64] = {};
      device_get_pci_bus_id(own, sizeof own, one->ordinal());
      if (std::strcmp(own, text) != 0) continue;
      *device = one->ordinal();
      return kCudaSuccess;
    }
    return kCudaInvalidDevice;
  });
}

}  // namespace annulus::simulator::driver::entry
