#ifndef ANNULUS_ALLOCATOR_H_
#define ANNULUS_ALLOCATOR_H_

// Device memory from the caller's own pool. Every piece of device memory that the library needs for
// a device (the lists of a plan, what a ring keeps, DeviceMemory) comes from these two functions
// where they are given, and from cuMemAlloc where they are not. Running a plan asks for nothing.

#include <cstddef>
#include <functional>

#include "annulus/version.h"

namespace annulus::inline v0 {

// Both or neither. Called on the thread that called the library, perhaps on several at a time, with
// the device's context current. What they use must stay until the device, its plans and its memory
// are gone. They must not call the library with the same device.
struct AllocatorCallbacks {
  // `bytes` > 0 bytes of device memory at a multiple of `alignment` (256), which every stream of
  // the device's primary context may use at once: no work that is still pending reads or writes
  // them. Null, and any exception but Error, become Error{kOutOfMemory} of the call that needed the
  // memory; an Error is passed on.
  std::function<void*(std::size_t bytes, std::size_t alignment)> allocate;
  // Takes back what allocate gave, with the same size. The library has waited for the device, so
  // nothing uses it any more. An exception is ignored: destructors call this.
  std::function<void(void* address, std::size_t bytes)> release;
};

}  // namespace annulus::inline v0

#endif  // ANNULUS_ALLOCATOR_H_
