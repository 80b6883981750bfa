// Functions of modules, memory and streams that only other programs use (provided.def).

#include <algorithm>
#include <fstream>
#include <iterator>

#include "simulator/driver/capture.h"
#include "simulator/driver/entries.h"
#include "simulator/driver/image.h"
#include "simulator/driver/state.h"

namespace annulus::simulator::driver::entry {
namespace {

// CUjit_option. Their values are passed as pointers.
enum : int {
  kJitInfoLog = 3,
  kJitInfoLogBytes = 4,
  kJitErrorLog = 5,
  kJitErrorLogBytes = 6,
};

// CUpointer_attribute and CUmemorytype
enum : int {
  kPointerContext = 1,
  kPointerMemoryType = 2,
  kPointerDevicePointer = 3,
  kPointerDeviceOrdinal = 9,
  kPointerRangeStart = 11,
  kPointerRangeSize = 12,
};
constexpr unsigned kMemoryDevice = 2;

// The device whose memory holds the address, or null. Addresses are unique among all devices.
Device* device_with(CUdeviceptr address) {
  for (const auto& device : state().devices) {
    const GlobalMemory* memory = device->made_memory();
    if (memory != nullptr && memory->contains(address)) return device.get();
  }
  return nullptr;
}

struct Found {
  Allocation allocation;  // end 0: none
  Device* device = nullptr;
};
Found find_allocation(CUdeviceptr pointer) {
  live_context();
  Device* const device = device_with(pointer);
  if (device == nullptr) return {};
  return {device->made_memory()->find(pointer, 1), device};
}

// The context that an allocation belongs to. Variables of modules belong to none here.
CUcontext owner_of(CUdeviceptr begin) {
  for (const auto& context : state().contexts.all()) {
    std::lock_guard lock(context->mutex);
    if (context->allocations.contains(begin)) return context->handle();
  }
  return live_context()->handle();
}

void* host_pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

// Writes the log where the options ask for it, and its length back into the size option.
void give_log(const std::string& log, unsigned count, const int* options, void** values,
              int buffer_option, int bytes_option) {
  char* buffer = nullptr;
  void** bytes = nullptr;
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] == buffer_option) buffer = static_cast<char*>(values[i]);
    if (options[i] == bytes_option) bytes = &values[i];
  }
  if (buffer == nullptr || bytes == nullptr) return;
  const auto room = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(*bytes));
  if (room == 0) return;
  const std::size_t length = std::min<std::size_t>(log.size(), room - 1);
  log.copy(buffer, length);
  buffer[length] = '\0';
  *bytes = reinterpret_cast<void*>(static_cast<std::uintptr_t>(length));
}

}  // namespace

CUresult module_load_data_ex(CUmodule* module, const void* image, unsigned count, int* options,
                             void** values) {
  return guarded([&]() -> CUresult {
    const auto context = live_context();
    if (module == nullptr || image == nullptr) return kCudaInvalidValue;
    if (count != 0 && (options == nullptr || values == nullptr)) return kCudaInvalidValue;
    refuse_under_capture();
    LoadResult result = load_image(context, image);
    give_log(result.log, count, options, values, kJitErrorLog, kJitErrorLogBytes);
    give_log({}, count, options, values, kJitInfoLog, kJitInfoLogBytes);
    if (result.module == nullptr) {
      context->device->report(base::LogLevel::kWarning, "module", result.log);
      return result.code;
    }
    *module = state().modules.add(std::move(result.module));
    return kCudaSuccess;
  });
}

CUresult module_load(CUmodule* module, const char* file) {
  return guarded([&]() -> CUresult {
    if (file == nullptr) return kCudaInvalidValue;
    std::ifstream stream(file, std::ios::binary);
    if (!stream) return kCudaFileNotFound;
    const std::string image{std::istreambuf_iterator<char>(stream), {}};
    return module_load_data(module, image.c_str());
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

CUresult launch_host_func(CUstream stream, void (*function)(void*), void* data) {
  return guarded([&]() -> CUresult {
    if (function == nullptr) return kCudaInvalidValue;
    // The function runs behind all that was queued before and can tell the rest of the program, so
    // the host has seen that work end.
    Work work = make_work("cuLaunchHostFunc", [function, data](const OperationPointer& operation) {
      state().detector.order.observe(*operation);
      function(data);
    });
    work.on_host = true;
    find_stream(stream)->submit(std::move(work));
    return kCudaSuccess;
  });
}

CUresult occupancy_max_active_blocks_with_flags(int* blocks, CUfunction function, int threads,
                                                std::size_t dynamic_shared_bytes, unsigned) {
  return occupancy_max_active_blocks(blocks, function, threads, dynamic_shared_bytes);
}

CUresult mem_host_alloc(void** pointer, std::size_t bytes, unsigned flags) {
  constexpr unsigned kDeviceMapped = 2;
  if ((flags & kDeviceMapped) != 0) return kCudaNotSupported;  // kernels see only device memory
  return mem_alloc_host(pointer, bytes);
}

CUresult mem_get_address_range(CUdeviceptr* base, std::size_t* bytes, CUdeviceptr pointer) {
  return guarded([&]() -> CUresult {
    const Allocation found = find_allocation(pointer).allocation;
    if (found.end == 0) return kCudaNotFound;
    if (base != nullptr) *base = found.begin;
    if (bytes != nullptr) *bytes = found.end - found.begin;
    return kCudaSuccess;
  });
}

CUresult pointer_get_attribute(void* value, int attribute, CUdeviceptr pointer) {
  return guarded([&]() -> CUresult {
    const auto [found, device] = find_allocation(pointer);
    if (value == nullptr || found.end == 0) return kCudaInvalidValue;
    switch (attribute) {
      case kPointerContext:
        *static_cast<CUcontext*>(value) = owner_of(found.begin);
        break;
      case kPointerMemoryType:
        *static_cast<unsigned*>(value) = kMemoryDevice;
        break;
      case kPointerDevicePointer:
        *static_cast<CUdeviceptr*>(value) = pointer;
        break;
      case kPointerDeviceOrdinal:
        *static_cast<int*>(value) = device->ordinal();
        break;
      case kPointerRangeStart:
        *static_cast<CUdeviceptr*>(value) = found.begin;
        break;
      case kPointerRangeSize:
        *static_cast<std::size_t*>(value) = found.end - found.begin;
        break;
      default:
        return kCudaInvalidValue;
    }
    return kCudaSuccess;
  });
}

CUresult memcpy_any(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  return guarded([&]() -> CUresult {
    refuse_under_capture();
    const bool to_device = device_with(to) != nullptr;
    const bool from_device = device_with(from) != nullptr;
    if (to_device && from_device) return memcpy_dtod(to, from, bytes);
    if (to_device) return memcpy_htod(to, host_pointer(from), bytes);
    return from_device ? memcpy_dtoh(host_pointer(to), from, bytes) : kCudaInvalidValue;
  });
}

// Either side may be on the host, as its address tells.
CUresult memcpy_any_async(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return guarded([&]() -> CUresult {
    const auto on = find_stream(stream);
    const bool to_device = device_with(to) != nullptr;
    const bool from_device = device_with(from) != nullptr;
    if (to_device && from_device) return memcpy_dtod_async(to, from, bytes, stream);
    if (to_device) return memcpy_htod_async(to, host_pointer(from), bytes, stream);
    if (from_device) return memcpy_dtoh_async(host_pointer(to), from, bytes, stream);
    return kCudaInvalidValue;
  });
}

CUresult memcpy_dtod(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  return guarded([&]() -> CUresult {
    refuse_under_capture();
    return memcpy_dtod_async(to, from, bytes, nullptr);
  });
}

CUresult memset_d8(CUdeviceptr to, unsigned char value, std::size_t count) {
  return guarded([&]() -> CUresult {
    refuse_under_capture();
    return memset_d8_async(to, value, count, nullptr);
  });
}

CUresult memset_d16(CUdeviceptr to, unsigned short value, std::size_t count) {
  return guarded([&]() -> CUresult {
    refuse_under_capture();
    return memset_d16_async(to, value, count, nullptr);
  });
}

CUresult memset_d32(CUdeviceptr to, unsigned value, std::size_t count) {
  return guarded([&]() -> CUresult {
    refuse_under_capture();
    return memset_d32_async(to, value, count, nullptr);
  });
}

// All streams have one priority.
CUresult stream_create_with_priority(CUstream* stream, unsigned flags, int) {
  return stream_create(stream, flags);
}

CUresult stream_get_flags(CUstream stream, unsigned* flags) {
  return guarded([&]() -> CUresult {
    const auto on = find_stream(stream);
    if (flags == nullptr) return kCudaInvalidValue;
    *flags = on->kind() == Stream::Kind::kNonBlocking ? unsigned{kStreamNonBlocking} : 0u;
    return kCudaSuccess;
  });
}

CUresult stream_get_priority(CUstream stream, int* priority) {
  return guarded([&]() -> CUresult {
    find_stream(stream);
    if (priority == nullptr) return kCudaInvalidValue;
    *priority = 0;
    return kCudaSuccess;
  });
}

CUresult stream_get_ctx(CUstream stream, CUcontext* context) {
  return guarded([&]() -> CUresult {
    const auto on = find_stream(stream);
    if (context == nullptr) return kCudaInvalidValue;
    *context = on->context()->handle();
    return kCudaSuccess;
  });
}

// CUstreamCaptureStatus: 0 none, 1 active, 2 invalidated.
CUresult stream_is_capturing(CUstream stream, int* status) {
  return guarded([&]() -> CUresult {
    const auto capture = find_stream(stream)->capture();
    if (status == nullptr) return kCudaInvalidValue;
    *status = 0;
    if (capture == nullptr) return kCudaSuccess;
    std::lock_guard lock(capture->mutex);
    *status = capture->invalid ? 2 : 1;
    return kCudaSuccess;
  });
}

CUresult event_record_with_flags(CUevent event, CUstream stream, unsigned flags) {
  return flags != 0 ? kCudaNotSupported : event_record(event, stream);
}

}  // namespace annulus::simulator::driver::entry
