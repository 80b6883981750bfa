#ifndef ANNULUS_ATTENTION_KERNELS_DEVICE_LIMITS_H_
#define ANNULUS_ATTENTION_KERNELS_DEVICE_LIMITS_H_

// The facts of a device that planning needs, so that a plan can be made without a device.

#include <cstdint>
#include <span>

#include "attention/kernels/withheld.h"
#include "jit/arch.h"

namespace annulus::attention {

// The limits of a device, which the planner reads from its attributes.
struct DeviceLimits {
  jit::Arch arch;
  int multiprocessors = 1;
  std::int64_t shared_bytes_per_block = 0;  // the most dynamic shared memory that a CTA may have
  // The values that the driver reports; 0 if it does not report them, or if there is no device. The
  // predictions of the cost model depend on them, and so does each choice by prediction.
  int clock_kilohertz = 0;
  int memory_clock_kilohertz = 0;
  int memory_bus_bits = 0;
  // Kernels that are not chosen unless the caller names them (why_withheld).
  std::span<const Withheld> withheld = kWithheld;
};

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_KERNELS_DEVICE_LIMITS_H_
