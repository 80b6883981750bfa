// Queries of what a pointer points to.

#include <algorithm>
#include <optional>

#include "simulator/driver/entries/entries.h"
#include "simulator/driver/objects/host_memory.h"
#include "simulator/driver/objects/memory_pools.h"
#include "simulator/driver/objects/state.h"

namespace annulus::simulator::driver::entry {
namespace {

struct Target {
  CUdeviceptr pointer = 0;
  Allocation allocation;
  Device* device = nullptr;  // null: memory of the host
  HostBlock block;           // the block, for memory of the host
};

std::optional<Target> find_target(CUdeviceptr pointer) {
  Target target;
  target.pointer = pointer;
  const GlobalMemory* const memory = memory_at(pointer);
  if (memory == nullptr) return std::nullopt;
  target.allocation = memory->find(pointer, 1);
  if (target.allocation.end == 0) return std::nullopt;
  for (const auto& device : state().devices) {
    if (device->made_memory() == memory) target.device = device.get();
  }
  if (const auto found = find_host_block(pointer, 1)) target.block = found->block;
  return target;
}

// The context that an allocation belongs to. Variables of modules belong to no context here.
CUcontext owner_of(const Target& target) {
  if (target.device == nullptr) {
    const auto context = target.block.context.lock();
    return context == nullptr ? nullptr : context->handle();
  }
  for (const auto& context : state().contexts.all()) {
    std::lock_guard lock(context->mutex);
    if (context->allocations.contains(target.allocation.begin)) return context->handle();
  }
  return live_context()->handle();
}

int ordinal_of(const Target& target) {
  if (target.device != nullptr) return target.device->ordinal();
  const auto context = target.block.context.lock();
  return context == nullptr ? 0 : context->device->ordinal();
}

template <typename T>
void store(void* to, const T& value) {
  *static_cast<T*>(to) = value;
}

// Attributes whose value is an address or another number of 64 bits.
bool wide_attribute(const Target& target, int attribute, void* value) {
  const bool managed = target.block.kind == HostBlock::Kind::kManaged;
  const Allocation& at = target.allocation;
  switch (attribute) {
    case kPointerContext:
      store(value, owner_of(target));
      return true;
    case kPointerDevicePointer:
      store(value, target.pointer);
      return true;
    case kPointerHostPointer:
      if (target.device != nullptr && !managed) throw Refusal{kCudaInvalidValue};
      store(value, reinterpret_cast<void*>(target.pointer));
      return true;
    case kPointerRangeStart:
    case kPointerMappingStart:
      store(value, CUdeviceptr{at.begin});
      return true;
    case kPointerRangeSize:
    case kPointerMappingSize:
      store(value, std::size_t{at.end - at.begin});
      return true;
    case kPointerBufferId:
    case kPointerBlockId:
      store(value, static_cast<unsigned long long>(at.begin));  // the address is a unique id
      return true;
    case kPointerAllowedHandleTypes:
      store(value, std::uint64_t{0});
      return true;
    case kPointerMemoryPool: {
      const auto pool = pool_of(at.begin);
      store(value, pool == nullptr ? nullptr : pool->handle());
      return true;
    }
    default:
      return false;
  }
}

CUresult give(const Target& target, int attribute, void* value) {
  if (wide_attribute(target, attribute, value)) return kCudaSuccess;
  const bool managed = target.device == nullptr && target.block.kind == HostBlock::Kind::kManaged;
  switch (attribute) {
    case kPointerMemoryType:
      store(value, static_cast<unsigned>(target.device != nullptr || managed ? kMemoryDevice
                                                                             : kMemoryHost));
      break;
    case kPointerSyncMemops:
    case kPointerIsIpcCapable:
    case kPointerIsGpuDirectCapable:
    case kPointerIsDecompressCapable:
      store(value, false);
      break;
    case kPointerIsManaged:
      store(value, managed);
      break;
    case kPointerMapped:
      store(value, true);
      break;
    case kPointerDeviceOrdinal:
      store(value, ordinal_of(target));
      break;
    case kPointerAccessFlags:
      store(value, int{kAccessReadWrite});
      break;
    default:
      return kCudaInvalidValue;
  }
  return kCudaSuccess;
}

// Writes the values that cuPointerGetAttributes returns for a pointer which the driver does not
// know.
CUresult give_unknown(int attribute, void* value) {
  switch (attribute) {
    case kPointerContext:
    case kPointerDevicePointer:
    case kPointerHostPointer:
    case kPointerRangeStart:
    case kPointerRangeSize:
    case kPointerMappingStart:
    case kPointerMappingSize:
    case kPointerBufferId:
    case kPointerBlockId:
    case kPointerAllowedHandleTypes:
    case kPointerMemoryPool:
      store(value, std::uint64_t{0});
      break;
    case kPointerMemoryType:
    case kPointerAccessFlags:
      store(value, 0u);
      break;
    case kPointerDeviceOrdinal:
      store(value, int{kInvalidDevice});
      break;
    case kPointerSyncMemops:
    case kPointerIsIpcCapable:
    case kPointerIsGpuDirectCapable:
    case kPointerIsDecompressCapable:
    case kPointerIsManaged:
    case kPointerMapped:
      store(value, false);
      break;
    default:
      return kCudaInvalidValue;
  }
  return kCudaSuccess;
}

}  // namespace

CUresult mem_get_address_range(CUdeviceptr* base, std::size_t* bytes, CUdeviceptr pointer) {
  return guarded([&]() -> CUresult {
    live_context();
    const auto target = find_target(pointer);
    if (!target) return kCudaNotFound;
    if (base != nullptr) *base = target->allocation.begin;
    if (bytes != nullptr) *bytes = target->allocation.end - target->allocation.begin;
    return kCudaSuccess;
  });
}

CUresult pointer_get_attribute(void* value, int attribute, CUdeviceptr pointer) {
  return guarded([&]() -> CUresult {
    live_context();
    const auto target = find_target(pointer);
    if (value == nullptr || !target) return kCudaInvalidValue;
    return give(*target, attribute, value);
  });
}

CUresult pointer_get_attributes(unsigned count, int* attributes, void** values,
                                CUdeviceptr pointer) {
  return guarded([&]() -> CUresult {
    live_context();
    if (count == 0 || attributes == nullptr || values == nullptr) return kCudaInvalidValue;
    const auto target = find_target(pointer);
    for (unsigned i = 0; i < count; ++i) {
      if (values[i] == nullptr) return kCudaInvalidValue;
      const CUresult code =
          target ? give(*target, attributes[i], values[i]) : give_unknown(attributes[i], values[i]);
      if (code != kCudaSuccess) return code;
    }
    return kCudaSuccess;
  });
}

// The attribute makes copies of the memory wait. The call does nothing, because copies here wait
// anyway if the host could notice a difference.
CUresult pointer_set_attribute(const void* value, int attribute, CUdeviceptr pointer) {
  return guarded([&]() -> CUresult {
    live_context();
    const bool known = find_target(pointer).has_value();
    return value == nullptr || attribute != kPointerSyncMemops || !known ? kCudaInvalidValue
                                                                         : kCudaSuccess;
  });
}

}  // namespace annulus::simulator::driver::entry
