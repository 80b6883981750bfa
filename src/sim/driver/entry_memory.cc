// Memory: allocation, copies, fills. Bounds are checked when a copy is queued, as CUDA does. Copies
// from and to pageable host memory have ended on return, as CUDA promises for their host side.

#include <cstdlib>
#include <limits>

#include "sim/driver/entries.h"
#include "sim/driver/state.h"

namespace annulus::sim::driver::entry {
namespace {

constexpr std::size_t kHostAlignment = 4096;

// Whether [begin, begin + bytes) is page-locked memory from mem_alloc_host.
bool is_page_locked(const void* begin, std::size_t bytes) {
  const auto* address = static_cast<const char*>(begin);
  State& all = state();
  std::lock_guard lock(all.mutex);
  auto above = all.host_blocks.upper_bound(address);
  if (above == all.host_blocks.begin()) return false;
  --above;
  const auto offset = static_cast<std::size_t>(address - above->first);
  return offset <= above->second && bytes <= above->second - offset;
}

enum class Wait { kNo, kYes };

CUresult to_device(CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream,
                   Wait wait) {
  const auto on = find_stream(stream);
  if (bytes == 0) return kCudaSuccess;
  if (from == nullptr) return kCudaInvalidValue;
  GlobalMemory& memory = memory_with(*on->context(), to, bytes);
  const ItemPointer item =
      on->submit([&memory, to, from, bytes] { memory.write(to, from, bytes); });
  if (wait == Wait::kNo && is_page_locked(from, bytes)) return kCudaSuccess;
  state().queue.finish(item);
  return on->context()->lost;
}

CUresult to_host(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream, Wait wait) {
  const auto on = find_stream(stream);
  if (bytes == 0) return kCudaSuccess;
  if (to == nullptr) return kCudaInvalidValue;
  const GlobalMemory& memory = memory_with(*on->context(), from, bytes);
  const ItemPointer item = on->submit([&memory, to, from, bytes] { memory.read(to, from, bytes); });
  if (wait == Wait::kNo && is_page_locked(to, bytes)) return kCudaSuccess;
  state().queue.finish(item);
  return on->context()->lost;
}

// Memory is freed even in a context that a fault has broken, which a GPU's driver would not do
// before the end of the process: nothing is gained by keeping it.
CUresult release(const std::shared_ptr<Context>& context, CUdeviceptr pointer) {
  {
    std::lock_guard lock(context->mutex);
    if (context->allocations.erase(pointer) == 0) return kCudaInvalidValue;
  }
  context->device->memory().release(pointer);
  return context->lost;
}

CUresult fill(CUdeviceptr to, std::uint32_t value, int unit, std::size_t count, CUstream stream) {
  const auto on = find_stream(stream);
  if (count == 0) return kCudaSuccess;
  const auto unit_bytes = static_cast<std::size_t>(unit);
  if (to % unit_bytes != 0) return kCudaInvalidValue;
  if (count > std::numeric_limits<std::size_t>::max() / unit_bytes) return kCudaInvalidValue;
  GlobalMemory& memory = memory_with(*on->context(), to, count * unit_bytes);
  on->submit([&memory, to, value, unit, count] { memory.fill(to, value, unit, count); });
  return kCudaSuccess;
}

}  // namespace

CUresult mem_get_info(std::size_t* free_bytes, std::size_t* total_bytes) {
  return guarded([&]() -> CUresult {
    const auto context = live_context();
    if (free_bytes == nullptr || total_bytes == nullptr) return kCudaInvalidValue;
    const GlobalMemory& memory = context->device->memory();
    *total_bytes = memory.capacity();
    *free_bytes = memory.capacity() - memory.used();
    return kCudaSuccess;
  });
}

CUresult mem_alloc(CUdeviceptr* pointer, std::size_t bytes) {
  return guarded([&]() -> CUresult {
    const auto context = live_context();
    if (pointer == nullptr || bytes == 0) return kCudaInvalidValue;
    refuse_under_capture();
    const std::uint64_t address = context->device->memory().allocate(bytes);
    if (address == 0) return kCudaOutOfMemory;
    std::lock_guard lock(context->mutex);
    context->allocations.emplace(address, bytes);
    *pointer = address;
    return kCudaSuccess;
  });
}

// Waits for all work, as CUDA does. Null is allowed; a second free, or a pointer into the middle,
// is refused.
CUresult mem_free(CUdeviceptr pointer) {
  return guarded([&]() -> CUresult {
    const auto context = current_context();
    refuse_under_capture();
    if (pointer == 0) return context->lost;
    finish(*context);
    return release(context, pointer);
  });
}

CUresult mem_alloc_host(void** pointer, std::size_t bytes) {
  return guarded([&]() -> CUresult {
    live_context();
    if (pointer == nullptr || bytes == 0) return kCudaInvalidValue;
    refuse_under_capture();
    if (bytes > std::numeric_limits<std::size_t>::max() - kHostAlignment) return kCudaOutOfMemory;
    void* block = std::aligned_alloc(
        kHostAlignment, (bytes + kHostAlignment - 1) / kHostAlignment * kHostAlignment);
    if (block == nullptr) return kCudaOutOfMemory;
    State& all = state();
    std::lock_guard lock(all.mutex);
    all.host_blocks.emplace(static_cast<const char*>(block), bytes);
    *pointer = block;
    return kCudaSuccess;
  });
}

CUresult mem_free_host(void* pointer) {
  return guarded([&]() -> CUresult {
    const auto context = current_context();
    refuse_under_capture();
    if (pointer == nullptr) return context->lost;
    finish(*context);  // a copy may still want it
    State& all = state();
    {
      std::lock_guard lock(all.mutex);
      if (all.host_blocks.erase(static_cast<const char*>(pointer)) == 0) return kCudaInvalidValue;
    }
    std::free(pointer);
    return context->lost;
  });
}

CUresult memcpy_htod(CUdeviceptr to, const void* from, std::size_t bytes) {
  return guarded([&] {
    refuse_under_capture();
    return to_device(to, from, bytes, nullptr, Wait::kYes);
  });
}

CUresult memcpy_dtoh(void* to, CUdeviceptr from, std::size_t bytes) {
  return guarded([&] {
    refuse_under_capture();
    return to_host(to, from, bytes, nullptr, Wait::kYes);
  });
}

CUresult memcpy_htod_async(CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream) {
  return guarded([&] { return to_device(to, from, bytes, stream, Wait::kNo); });
}

CUresult memcpy_dtoh_async(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return guarded([&] { return to_host(to, from, bytes, stream, Wait::kNo); });
}

CUresult memcpy_dtod_async(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return guarded([&]() -> CUresult {
    const auto on = find_stream(stream);
    if (bytes == 0) return kCudaSuccess;
    // The two may lie on different devices: addresses are unified.
    GlobalMemory& target = memory_with(*on->context(), to, bytes);
    const GlobalMemory& source = memory_with(*on->context(), from, bytes);
    on->submit([&target, &source, to, from, bytes] { target.copy(to, source, from, bytes); });
    return kCudaSuccess;
  });
}

CUresult memset_d8_async(CUdeviceptr to, unsigned char value, std::size_t count, CUstream stream) {
  return guarded([&] { return fill(to, value, 1, count, stream); });
}

CUresult memset_d16_async(CUdeviceptr to, unsigned short value, std::size_t count,
                          CUstream stream) {
  return guarded([&] { return fill(to, value, 2, count, stream); });
}

CUresult memset_d32_async(CUdeviceptr to, unsigned value, std::size_t count, CUstream stream) {
  return guarded([&] { return fill(to, value, 4, count, stream); });
}

}  // namespace annulus::sim::driver::entry
