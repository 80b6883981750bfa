#ifndef ANNULUS_DEVICE_POINTER_H_
#define ANNULUS_DEVICE_POINTER_H_

// What the driver knows of an address, for checks while debugging.

#include "device/context.h"

namespace annulus::device {

// Whether kernels of the device may use the memory at this address: memory of the driver, device
// memory or page-locked. Anything is where the device reads the host's own memory, as on machines
// with one address space for both. It may be called while a stream is being captured.
bool is_reachable(const Context& context, const void* address);

}  // namespace annulus::device

#endif  // ANNULUS_DEVICE_POINTER_H_
