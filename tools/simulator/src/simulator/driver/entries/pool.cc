// Pools of memory.

#include "simulator/driver/entries/entries.h"
#include "simulator/driver/objects/accesses.h"
#include "simulator/driver/objects/capture.h"
#include "simulator/driver/objects/host_memory.h"
#include "simulator/driver/objects/memory_pools.h"
#include "simulator/driver/objects/state.h"

namespace annulus::simulator::driver::entry {
namespace {

std::shared_ptr<MemoryPool> find_pool(CUmemoryPool pool) {
  auto found = state().memory_pools.find(pool);
  if (found == nullptr) throw Refusal{kCudaInvalidValue};
  return found;
}

Device* device_of(const MemoryLocation& location) {
  if (location.type == kLocationDevice) return &device_at(location.id);
  if (location.type < kLocationDevice || location.type > 4) throw Refusal{kCudaInvalidValue};
  return nullptr;  // memory of the host
}

std::shared_ptr<MemoryPool> host_pool(bool managed) {
  State& all = state();
  std::lock_guard lock(all.mutex);
  std::shared_ptr<MemoryPool>& pool = all.host_pools[managed ? 1 : 0];
  if (pool == nullptr) {
    pool = std::make_shared<MemoryPool>();
    pool->managed = managed;
    pool->given = true;
    all.memory_pools.add(pool);
  }
  return pool;
}

void write_number(void* value, int attribute, MemoryPool& pool) {
  const auto give = [&](std::uint64_t number) { *static_cast<std::uint64_t*>(value) = number; };
  std::lock_guard lock(pool.mutex);
  switch (attribute) {
    case kPoolReuseFollowEvents:
    case kPoolReuseOpportunistic:
    case kPoolReuseInternal:
      *static_cast<int*>(value) = pool.reuse[attribute - kPoolReuseFollowEvents];
      return;
    case kPoolReleaseThreshold:
      return give(pool.release_threshold);
    case kPoolReservedNow:
    case kPoolUsedNow:
      return give(pool.used);
    case kPoolReservedHigh:
    case kPoolUsedHigh:
      return give(pool.used_high);
    default:
      throw Refusal{kCudaInvalidValue};
  }
}

}  // namespace

CUresult mem_pool_create(CUmemoryPool* pool, const PoolProperties* properties) {
  return guarded([&]() -> CUresult {
    if (pool == nullptr || properties == nullptr) return kCudaInvalidValue;
    if (properties->handle_types != 0) return kCudaNotSupported;  // sharing with other processes
    const bool managed = properties->allocation_type == kAllocationManaged;
    if (!managed && properties->allocation_type != kAllocationPinned) return kCudaInvalidValue;
    auto made = std::make_shared<MemoryPool>();
    made->managed = managed;
    if (!managed) made->device = device_of(properties->location);
    made->max_bytes = properties->max_bytes;
    *pool = state().memory_pools.add(std::move(made));
    return kCudaSuccess;
  });
}

// Memory that was allocated from the pool stays allocated until it is freed.
CUresult mem_pool_destroy(CUmemoryPool pool) {
  return guarded([&]() -> CUresult {
    const auto found = find_pool(pool);
    if (found->given) return kCudaInvalidValue;
    for (const auto& device : state().devices) {
      if (device->pool() == found) device->set_pool(nullptr);
    }
    state().memory_pools.remove(pool);
    return kCudaSuccess;
  });
}

CUresult mem_pool_set_attribute(CUmemoryPool pool, int attribute, void* value) {
  return guarded([&]() -> CUresult {
    const auto found = find_pool(pool);
    if (value == nullptr) return kCudaInvalidValue;
    std::lock_guard lock(found->mutex);
    switch (attribute) {
      case kPoolReuseFollowEvents:
      case kPoolReuseOpportunistic:
      case kPoolReuseInternal:
        found->reuse[attribute - kPoolReuseFollowEvents] = *static_cast<int*>(value) != 0 ? 1 : 0;
        return kCudaSuccess;
      case kPoolReleaseThreshold:
        found->release_threshold = *static_cast<std::uint64_t*>(value);
        return kCudaSuccess;
      case kPoolReservedHigh:
      case kPoolUsedHigh:
        // A high-water mark can only be reset, to 0.
        if (*static_cast<std::uint64_t*>(value) != 0) return kCudaInvalidValue;
        found->used_high = found->used;
        return kCudaSuccess;
      default:
        return kCudaInvalidValue;
    }
  });
}

CUresult mem_pool_get_attribute(CUmemoryPool pool, int attribute, void* value) {
  return guarded([&]() -> CUresult {
    const auto found = find_pool(pool);
    if (value == nullptr) return kCudaInvalidValue;
    write_number(value, attribute, *found);
    return kCudaSuccess;
  });
}

// A pool keeps no freed memory, so there is nothing to release.
CUresult mem_pool_trim_to(CUmemoryPool pool, std::size_t) {
  return guarded([&]() -> CUresult {
    find_pool(pool);
    return kCudaSuccess;
  });
}

// Allows kernels of the device to access memory from the pool, even without cuCtxEnablePeerAccess.
// A permission to read only is not enforced.
CUresult mem_pool_set_access(CUmemoryPool pool, const AccessDescription* access,
                             std::size_t count) {
  return guarded([&]() -> CUresult {
    const auto found = find_pool(pool);
    if (access == nullptr && count != 0) return kCudaInvalidValue;
    for (std::size_t i = 0; i < count; ++i) {
      const int flags = access[i].flags;
      if (flags != kAccessNone && flags != kAccessRead && flags != kAccessReadWrite) {
        return kCudaInvalidValue;
      }
      Device* const device = device_of(access[i].location);
      if (device == nullptr) continue;
      if (device == found->device && flags == kAccessNone) return kCudaInvalidDevice;
      std::lock_guard lock(found->mutex);
      found->access[device->ordinal()] = flags;
      state().pools_are_shared = true;
    }
    return kCudaSuccess;
  });
}

CUresult mem_pool_get_access(int* flags, CUmemoryPool pool, MemoryLocation* location) {
  return guarded([&]() -> CUresult {
    const auto found = find_pool(pool);
    if (flags == nullptr || location == nullptr) return kCudaInvalidValue;
    const Device* const device = device_of(*location);
    const bool own = device == found->device || found->device == nullptr;
    *flags = own ? kAccessReadWrite : kAccessNone;
    if (own || device == nullptr) return kCudaSuccess;
    std::lock_guard lock(found->mutex);
    const auto set = found->access.find(device->ordinal());
    if (set != found->access.end()) *flags = set->second;
    return kCudaSuccess;
  });
}

CUresult device_get_default_mem_pool(CUmemoryPool* pool, CUdevice device) {
  return guarded([&]() -> CUresult {
    Device& at = device_at(device);
    if (pool == nullptr) return kCudaInvalidValue;
    *pool = at.default_pool()->handle();
    return kCudaSuccess;
  });
}

CUresult device_get_mem_pool(CUmemoryPool* pool, CUdevice device) {
  return guarded([&]() -> CUresult {
    Device& at = device_at(device);
    if (pool == nullptr) return kCudaInvalidValue;
    *pool = at.pool()->handle();
    return kCudaSuccess;
  });
}

CUresult device_set_mem_pool(CUdevice device, CUmemoryPool pool) {
  return guarded([&]() -> CUresult {
    Device& at = device_at(device);
    const auto found = find_pool(pool);
    if (found->device != &at) return kCudaInvalidValue;
    at.set_pool(found);
    return kCudaSuccess;
  });
}

// The default pools of a place, since CUDA 13. The first use makes the pools of the host and of
// managed memory.
CUresult mem_get_default_mem_pool(CUmemoryPool* pool, MemoryLocation* location, int type) {
  return guarded([&]() -> CUresult {
    if (pool == nullptr || location == nullptr) return kCudaInvalidValue;
    const bool managed = type == kAllocationManaged;
    if (!managed && type != kAllocationPinned) return kCudaInvalidValue;
    Device* const device = managed ? nullptr : device_of(*location);
    *pool = device != nullptr ? device->default_pool()->handle() : host_pool(managed)->handle();
    return kCudaSuccess;
  });
}

CUresult mem_get_mem_pool(CUmemoryPool* pool, MemoryLocation* location, int type) {
  return guarded([&]() -> CUresult {
    if (location != nullptr && type == kAllocationPinned && location->type == kLocationDevice) {
      return device_get_mem_pool(pool, location->id);
    }
    return mem_get_default_mem_pool(pool, location, type);
  });
}

CUresult mem_set_mem_pool(MemoryLocation* location, int type, CUmemoryPool pool) {
  return guarded([&]() -> CUresult {
    if (location == nullptr) return kCudaInvalidValue;
    if (type != kAllocationPinned || location->type != kLocationDevice) return kCudaNotSupported;
    return device_set_mem_pool(location->id, pool);
  });
}

// Work that comes after this point of the stream may use the memory.
CUresult mem_alloc_from_pool_async(CUdeviceptr* pointer, std::size_t bytes, CUmemoryPool pool,
                                   CUstream stream) {
  return guarded([&]() -> CUresult {
    const auto on = find_stream(stream);
    refuse_capturing(*on);
    const auto found = find_pool(pool);
    if (pointer == nullptr || bytes == 0) return kCudaInvalidValue;
    refuse_under_capture();
    const std::uint64_t begin = allocate_from(found, on->context(), bytes);
    if (begin == 0) return kCudaOutOfMemory;
    try {
      {
        std::lock_guard lock(on->context()->mutex);
        on->context()->allocations.emplace(begin, bytes);
      }
      const GlobalMemory& memory = memory_with(*on->context(), begin, bytes);
      on->submit(
          make_work("cuMemAllocAsync", [&memory, begin, bytes](const OperationPointer& operation) {
            note(operation, AccessKind::kWrite, memory, begin, bytes);
          }));
    } catch (...) {
      mem_free(begin);
      throw;
    }
    *pointer = begin;
    return kCudaSuccess;
  });
}

}  // namespace annulus::simulator::driver::entry
