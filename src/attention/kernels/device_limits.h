#ifndef ANNULUS_ATTENTION_KERNELS_DEVICE_LIMITS_H_
#define ANNULUS_ATTENTION_KERNELS_DEVICE_LIMITS_H_

// What planning has to know of a device, so that a plan can be made without one.

#include <cstdint>

#include "jit/arch.h"

namespace annulus::attention {

// What a device allows; read from its attributes by whoever plans.
struct DeviceLimits {
  jit::Arch arch;
  int multiprocessors = 1;
  std::int64_t shared_bytes_per_block = 0;  // the most dynamic shared memory a CTA may have
};

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_KERNELS_DEVICE_LIMITS_H_
