// Page-locked, managed and pitched memory, and a program's hints about managed memory.

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/math.h"
#include "simulator/driver/entries/entries.h"
#include "simulator/driver/objects/accesses.h"
#include "simulator/driver/objects/capture.h"
#include "simulator/driver/objects/host_memory.h"
#include "simulator/driver/objects/state.h"

namespace annulus::simulator::driver::entry {
namespace {

constexpr std::size_t kPitch = 512;

// The managed block that holds the range.
FoundBlock find_managed(CUdeviceptr pointer, std::size_t bytes) {
  live_context();
  auto found = find_host_block(pointer, bytes);
  if (!found || found->block.kind != HostBlock::Kind::kManaged) throw Refusal{kCudaInvalidValue};
  return *std::move(found);
}

// A location from an argument of a function before CUDA 12.2: an ordinal, or the number of the
// host.
MemoryLocation location_of(CUdevice device) {
  if (device == kCpuDevice) return {kLocationHost, 0};
  return {kLocationDevice, device_at(device).ordinal()};
}

void check(const MemoryLocation& location) {
  if (location.type == kLocationDevice) device_at(location.id);
  if (location.type < kLocationDevice || location.type > 4) throw Refusal{kCudaInvalidValue};
}

int as_device(const MemoryLocation& location) {
  if (location.type == kLocationInvalid) return kInvalidDevice;
  return location.type == kLocationDevice ? location.id : int{kCpuDevice};
}

CUresult advise(CUdeviceptr pointer, std::size_t bytes, int advice,
                const MemoryLocation& location) {
  const FoundBlock found = find_managed(pointer, bytes);
  if (advice < kAdviseSetReadMostly || advice > kAdviseUnsetAccessedBy) return kCudaInvalidValue;
  if (advice == kAdviseSetPreferred || advice >= kAdviseSetAccessedBy) check(location);
  const int device = as_device(location);
  change_host_block(found.begin, [&](HostBlock& block) {
    if (advice <= kAdviseUnsetReadMostly) block.read_mostly = advice == kAdviseSetReadMostly;
    if (advice == kAdviseSetPreferred) block.preferred = location;
    if (advice == kAdviseUnsetPreferred) block.preferred = {kLocationInvalid, kInvalidDevice};
    if (advice < kAdviseSetAccessedBy) return;
    std::erase(block.accessed_by, device);
    if (advice == kAdviseSetAccessedBy) block.accessed_by.push_back(device);
  });
  return kCudaSuccess;
}

// All memory is memory of the host, so a prefetch moves nothing.
CUresult prefetch(CUdeviceptr pointer, std::size_t bytes, const MemoryLocation& location,
                  CUstream stream) {
  const FoundBlock found = find_managed(pointer, bytes);
  check(location);
  const auto on = find_stream(stream);
  refuse_capturing(*on);
  change_host_block(found.begin, [&](HostBlock& block) { block.prefetched = location; });
  return kCudaSuccess;
}

CUresult range_attribute(void* data, std::size_t bytes, int attribute, const HostBlock& block) {
  if (data == nullptr || bytes < sizeof(int) || bytes % sizeof(int) != 0) return kCudaInvalidValue;
  const auto give = [&](int value) {
    std::memcpy(data, &value, sizeof value);
    return bytes == sizeof value ? kCudaSuccess : kCudaInvalidValue;
  };
  switch (attribute) {
    case kRangeReadMostly:
      return give(block.read_mostly ? 1 : 0);
    case kRangePreferred:
      return give(as_device(block.preferred));
    case kRangeLastPrefetch:
      return give(as_device(block.prefetched));
    case kRangePreferredType:
      return give(block.preferred.type);
    case kRangePreferredId:
      return give(block.preferred.id);
    case kRangeLastPrefetchType:
      return give(block.prefetched.type);
    case kRangeLastPrefetchId:
      return give(block.prefetched.id);
    case kRangeAccessedBy: {
      std::vector<int> devices = block.accessed_by;
      devices.resize(bytes / sizeof(int), kInvalidDevice);
      std::memcpy(data, devices.data(), bytes);
      return kCudaSuccess;
    }
    default:
      return kCudaInvalidValue;
  }
}

}  // namespace

CUresult mem_alloc_pitch(CUdeviceptr* pointer, std::size_t* pitch, std::size_t width,
                         std::size_t height, unsigned element_bytes) {
  return guarded([&]() -> CUresult {
    if (pointer == nullptr || pitch == nullptr || width == 0 || height == 0) {
      return kCudaInvalidValue;
    }
    if (element_bytes != 4 && element_bytes != 8 && element_bytes != 16) return kCudaInvalidValue;
    if (width > SIZE_MAX - kPitch) return kCudaOutOfMemory;
    const std::size_t row = base::round_up(width, kPitch);
    if (height > SIZE_MAX / row) return kCudaOutOfMemory;
    const CUresult code = mem_alloc(pointer, row * height);
    if (code == kCudaSuccess) *pitch = row;
    return code;
  });
}

// Every block is mapped and portable, whatever the flags, as with unified addressing.
CUresult mem_host_alloc(void** pointer, std::size_t bytes, unsigned flags) {
  return guarded([&]() -> CUresult {
    const auto context = live_context();
    if (pointer == nullptr || bytes == 0 || (flags & ~kHostAllocFlags) != 0) {
      return kCudaInvalidValue;
    }
    refuse_under_capture();
    const std::uint64_t begin = allocate_host(context, bytes, HostBlock::Kind::kAllocated, flags);
    if (begin == 0) return kCudaOutOfMemory;
    *pointer = reinterpret_cast<void*>(begin);
    return kCudaSuccess;
  });
}

CUresult mem_host_register(void* pointer, std::size_t bytes, unsigned flags) {
  return guarded([&]() -> CUresult {
    const auto context = live_context();
    if (pointer == nullptr || bytes == 0 || (flags & ~kHostRegisterFlags) != 0) {
      return kCudaInvalidValue;
    }
    if (bytes > UINTPTR_MAX / 2 - reinterpret_cast<std::uintptr_t>(pointer)) {
      return kCudaInvalidValue;
    }
    refuse_under_capture();
    if (!register_host(context, pointer, bytes, flags)) return kCudaHostMemoryAlreadyRegistered;
    return kCudaSuccess;
  });
}

CUresult mem_host_unregister(void* pointer) {
  return guarded([&]() -> CUresult {
    const auto context = current_context();
    refuse_under_capture();
    state().queue.finish_linked(*context);  // a queued copy may still use it
    const auto address = reinterpret_cast<std::uint64_t>(pointer);
    const auto block = remove_host_block(address, {HostBlock::Kind::kRegistered});
    if (!block) return kCudaHostMemoryNotRegistered;
    const auto alone = state().queue.alone();
    const auto fault = freed_by_host(*block->memory, address, "cuMemHostUnregister");
    block->memory->release(address);
    if (fault != nullptr && context->lost == kCudaSuccess) break_context(*context, *fault);
    return context->lost;
  });
}

CUresult mem_host_get_device_pointer(CUdeviceptr* pointer, void* host, unsigned flags) {
  return guarded([&]() -> CUresult {
    live_context();
    const auto address = reinterpret_cast<std::uint64_t>(host);
    if (pointer == nullptr || flags != 0 || !find_host_block(address, 1)) return kCudaInvalidValue;
    *pointer = address;
    return kCudaSuccess;
  });
}

CUresult mem_host_get_flags(unsigned* flags, void* host) {
  return guarded([&]() -> CUresult {
    live_context();
    const auto found = find_host_block(reinterpret_cast<std::uint64_t>(host), 1);
    if (flags == nullptr || !found || found->block.kind == HostBlock::Kind::kManaged) {
      return kCudaInvalidValue;
    }
    *flags = found->block.flags;
    return kCudaSuccess;
  });
}

CUresult mem_alloc_managed(CUdeviceptr* pointer, std::size_t bytes, unsigned flags) {
  return guarded([&]() -> CUresult {
    const auto context = live_context();
    if (pointer == nullptr || bytes == 0) return kCudaInvalidValue;
    if (flags != kAttachGlobal && flags != kAttachHost) return kCudaInvalidValue;
    refuse_under_capture();
    const std::uint64_t begin = allocate_host(context, bytes, HostBlock::Kind::kManaged, flags);
    if (begin == 0) return kCudaOutOfMemory;
    std::lock_guard lock(context->mutex);
    context->allocations.emplace(begin, bytes);
    *pointer = begin;
    return kCudaSuccess;
  });
}

CUresult mem_prefetch_async(CUdeviceptr pointer, std::size_t bytes, CUdevice device,
                            CUstream stream) {
  return guarded([&] { return prefetch(pointer, bytes, location_of(device), stream); });
}

CUresult mem_prefetch_async_v2(CUdeviceptr pointer, std::size_t bytes, MemoryLocation location,
                               unsigned flags, CUstream stream) {
  return guarded([&]() -> CUresult {
    if (flags != 0) return kCudaInvalidValue;
    return prefetch(pointer, bytes, location, stream);
  });
}

CUresult mem_advise(CUdeviceptr pointer, std::size_t bytes, int advice, CUdevice device) {
  return guarded([&]() -> CUresult {
    const bool placed = advice == kAdviseSetPreferred || advice >= kAdviseSetAccessedBy;
    const MemoryLocation nowhere{kLocationInvalid, kInvalidDevice};
    return advise(pointer, bytes, advice, placed ? location_of(device) : nowhere);
  });
}

CUresult mem_advise_v2(CUdeviceptr pointer, std::size_t bytes, int advice,
                       MemoryLocation location) {
  return guarded([&] { return advise(pointer, bytes, advice, location); });
}

CUresult mem_range_get_attribute(void* data, std::size_t data_bytes, int attribute,
                                 CUdeviceptr pointer, std::size_t bytes) {
  return guarded([&]() -> CUresult {
    return range_attribute(data, data_bytes, attribute, find_managed(pointer, bytes).block);
  });
}

CUresult mem_range_get_attributes(void** data, std::size_t* data_bytes, int* attributes,
                                  std::size_t count, CUdeviceptr pointer, std::size_t bytes) {
  return guarded([&]() -> CUresult {
    if (data == nullptr || data_bytes == nullptr || attributes == nullptr) return kCudaInvalidValue;
    const FoundBlock found = find_managed(pointer, bytes);
    for (std::size_t i = 0; i < count; ++i) {
      const CUresult code = range_attribute(data[i], data_bytes[i], attributes[i], found.block);
      if (code != kCudaSuccess) return code;
    }
    return kCudaSuccess;
  });
}

// The stream to which managed memory is attached has no effect here: the host may touch the memory
// at any time.
CUresult stream_attach_mem_async(CUstream stream, CUdeviceptr pointer, std::size_t bytes,
                                 unsigned flags) {
  return guarded([&]() -> CUresult {
    find_stream(stream);
    if (flags != kAttachGlobal && flags != kAttachHost && flags != kAttachSingle) {
      return kCudaInvalidValue;
    }
    find_managed(pointer, std::max<std::size_t>(bytes, 1));
    return kCudaSuccess;
  });
}

}  // namespace annulus::simulator::driver::entry
