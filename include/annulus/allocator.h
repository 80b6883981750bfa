#ifndef ANNULUS_ALLOCATOR_H_
#define ANNULUS_ALLOCATOR_H_

// Device memory from the caller's own pool. All device memory that the library needs for a device
// (the lists of a plan, what a ring keeps, DeviceMemory) comes from these two functions where they
// are given, and from cuMemAlloc where they are not. The library asks for slabs of 2 MiB and more,
// cuts them itself (Device::memory_statistics) and keeps them; where a slab is refused it asks for
// no more than it needs. Running a plan allocates nothing.

#include "annulus/language.h"

#include <cstddef>
#include <functional>

#include "annulus/version.h"

namespace annulus::inline v0 {

// Either both functions are set or neither. They are called on the thread that called the library,
// or that compiles for a plan which does not wait (PlanOptions::wait), perhaps on several at a
// time, with the device's context current. What they use must stay until the device, its plans and
// its memory are gone. They must not call the library with the same device.
struct AllocatorCallbacks {
  // Returns `bytes` > 0 bytes of device memory at a multiple of `alignment` (256), which every
  // stream of the device's primary context may use at once: no work that is still pending reads or
  // writes them. A null result, and any exception but Error, make the call that needed the memory
  // throw Error{kOutOfMemory}; an Error is passed on.
  std::function<void*(std::size_t bytes, std::size_t alignment)> allocate;
  // Takes back memory that allocate gave, with the same size. All work that used it has ended, so
  // the pool may hand it out at once. Called when the device and its plans are gone, by
  // Device::trim, when memory runs out, and where over 64 MiB are empty. An exception is ignored:
  // destructors call this.
  std::function<void(void* address, std::size_t bytes)> release;
};

}  // namespace annulus::inline v0

#endif  // ANNULUS_ALLOCATOR_H_
