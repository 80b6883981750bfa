// Memory of devices and of the host: allocation, attributes of pointers, pools.

#include "base/math.h"
#include "simulator/runtime/entries.h"
#include "simulator/runtime/thread.h"

namespace annulus::simulator::runtime::entry {
namespace {

constexpr std::size_t kPitch = 512;  // rows of cudaMallocPitch begin at its multiples

// Stores the result of an allocation of the driver.
Error give(void** pointer, CUresult code, CUdeviceptr allocated) {
  if (code == cudaSuccess) *pointer = reinterpret_cast<void*>(allocated);
  return code;
}

template <typename T>
bool ask(T* value, int attribute, const void* pointer) {
  return driver().pointer_get_attribute(value, attribute, address(pointer)) == cudaSuccess;
}

}  // namespace

// An allocation of no bytes gives a null pointer. The driver returns an error for it.
Error malloc(void** pointer, std::size_t bytes) {
  if (pointer == nullptr) return cudaErrorInvalidValue;
  enter();
  *pointer = nullptr;
  if (bytes == 0) return cudaSuccess;
  CUdeviceptr allocated = 0;
  const CUresult code = driver().mem_alloc(&allocated, bytes);
  return give(pointer, code, allocated);
}

Error malloc_host(void** pointer, std::size_t bytes) {
  if (pointer == nullptr) return cudaErrorInvalidValue;
  enter();
  *pointer = nullptr;
  return bytes == 0 ? Error{cudaSuccess} : driver().mem_alloc_host(pointer, bytes);
}

Error malloc_managed(void** pointer, std::size_t bytes, unsigned flags) {
  if (pointer == nullptr || bytes == 0) return cudaErrorInvalidValue;
  enter();
  CUdeviceptr allocated = 0;
  const CUresult code = driver().mem_alloc_managed(&allocated, bytes, flags);
  return give(pointer, code, allocated);
}

Error malloc_pitch(void** pointer, std::size_t* pitch, std::size_t width, std::size_t height) {
  if (pitch == nullptr) return cudaErrorInvalidValue;
  *pitch = base::round_up(width, kPitch);
  if (height != 0 && *pitch > ~std::size_t{0} / height) return cudaErrorMemoryAllocation;
  return malloc(pointer, *pitch * height);
}

Error malloc_3d(PitchedPointer* pointer, Extent extent) {
  if (pointer == nullptr) return cudaErrorInvalidValue;
  if (extent.depth != 0 && extent.height > ~std::size_t{0} / extent.depth) {
    return cudaErrorMemoryAllocation;
  }
  *pointer = {nullptr, 0, extent.width, extent.height};
  return malloc_pitch(&pointer->ptr, &pointer->pitch, extent.width, extent.height * extent.depth);
}

Error free(void* pointer) {
  enter();
  return pointer == nullptr ? Error{cudaSuccess} : driver().mem_free(address(pointer));
}

Error free_host(void* pointer) {
  enter();
  return pointer == nullptr ? Error{cudaSuccess} : driver().mem_free_host(pointer);
}

Error host_alloc(void** pointer, std::size_t bytes, unsigned flags) {
  if (pointer == nullptr) return cudaErrorInvalidValue;
  enter();
  *pointer = nullptr;
  return bytes == 0 ? Error{cudaSuccess} : driver().mem_host_alloc(pointer, bytes, flags);
}

Error host_get_device_pointer(void** pointer, void* host, unsigned flags) {
  if (pointer == nullptr) return cudaErrorInvalidValue;
  enter();
  CUdeviceptr mapped = 0;
  const CUresult code = driver().mem_host_get_device_pointer(&mapped, host, flags);
  return give(pointer, code, mapped);
}

// Memory that the driver does not know is the host's own. That is a valid result and not an error.
Error pointer_get_attributes(PointerAttributes* attributes, const void* pointer) {
  if (attributes == nullptr) return cudaErrorInvalidValue;
  enter();
  *attributes = {.type = kUnregistered,
                 .device = kInvalidDeviceId,
                 .devicePointer = nullptr,
                 .hostPointer = const_cast<void*>(pointer),
                 .reserved = {}};
  unsigned type = 0;
  if (!ask(&type, kPointerMemoryType, pointer)) return cudaSuccess;
  unsigned managed = 0;
  CUdeviceptr device = 0;
  attributes->type = ask(&managed, kPointerManaged, pointer) && managed != 0
                         ? kManagedMemory
                         : static_cast<int>(type);
  if (!ask(&attributes->device, kPointerOrdinal, pointer)) attributes->device = 0;
  if (ask(&device, kPointerDevice, pointer)) {
    attributes->devicePointer = reinterpret_cast<void*>(device);
  }
  if (!ask(&attributes->hostPointer, kPointerHost, pointer)) attributes->hostPointer = nullptr;
  return cudaSuccess;
}

Error malloc_async(void** pointer, std::size_t bytes, CUstream stream) {
  if (pointer == nullptr) return cudaErrorInvalidValue;
  enter();
  *pointer = nullptr;
  if (bytes == 0) return cudaSuccess;
  CUdeviceptr allocated = 0;
  const CUresult code = driver().mem_alloc_async(&allocated, bytes, resolve(stream));
  return give(pointer, code, allocated);
}

Error malloc_from_pool_async(void** pointer, std::size_t bytes, MemoryPool pool, CUstream stream) {
  if (pointer == nullptr) return cudaErrorInvalidValue;
  enter();
  CUdeviceptr allocated = 0;
  const CUresult code =
      driver().mem_alloc_from_pool_async(&allocated, bytes, pool, resolve(stream));
  return give(pointer, code, allocated);
}

Error free_async(void* pointer, CUstream stream) {
  enter();
  if (pointer == nullptr) return cudaSuccess;
  return driver().mem_free_async(address(pointer), resolve(stream));
}

Error mem_prefetch(const void* pointer, std::size_t bytes, MemoryLocation location, unsigned flags,
                   CUstream stream) {
  enter();
  return driver().mem_prefetch_async(address(pointer), bytes, location, flags, resolve(stream));
}

Error mem_give_advice(const void* pointer, std::size_t bytes, int advice, MemoryLocation location) {
  enter();
  return driver().mem_advise(address(pointer), bytes, advice, location);
}

Error mem_range_attribute(void* data, std::size_t bytes, int attribute, const void* pointer,
                          std::size_t count) {
  enter();
  return driver().mem_range_get_attribute(data, bytes, attribute, address(pointer), count);
}

}  // namespace annulus::simulator::runtime::entry
