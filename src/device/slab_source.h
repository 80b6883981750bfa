#ifndef ANNULUS_DEVICE_SLAB_SOURCE_H_
#define ANNULUS_DEVICE_SLAB_SOURCE_H_

// The source of an arena's slabs: the caller's allocator, or the driver if there is none.

#include <cstddef>
#include <utility>

#include "abi/cuda_types.h"
#include "annulus/device.h"

namespace annulus::device {

class Context;

class SlabSource {
 public:
  SlabSource(const Context& context, AllocatorCallbacks allocator)
      : context_(context), allocator_(std::move(allocator)) {}

  // A slab at a multiple of 256. Requires: the context is current. Throws Error{kOutOfMemory} with
  // the requested bytes, and the free bytes if it was the driver's memory. Throws
  // Error{kInvalidArgument} if the address is not aligned, and the caller's own Error.
  abi::CUdeviceptr take(std::size_t bytes) const;
  // Ignores exceptions, because destructors call it. `current` is whether the context is current.
  // If it is not, only an allocator gets its memory back.
  void give_back(abi::CUdeviceptr address, std::size_t bytes, bool current) const;

 private:
  const Context& context_;
  const AllocatorCallbacks allocator_;
};

}  // namespace annulus::device

#endif  // ANNULUS_DEVICE_SLAB_SOURCE_H_
