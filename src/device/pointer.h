#ifndef ANNULUS_DEVICE_POINTER_H_
#define ANNULUS_DEVICE_POINTER_H_

// The driver's information about an address, for debug checks.

#include "device/context.h"

namespace annulus::device {

// Whether kernels of the device may use the memory at this address: device memory or page-locked
// memory that the driver allocated. If the device can read ordinary host memory, as on machines
// with one address space for both, every address is reachable. It may be called while a stream is
// being captured.
bool is_reachable(const Context& context, const void* address);

}  // namespace annulus::device

#endif  // ANNULUS_DEVICE_POINTER_H_
