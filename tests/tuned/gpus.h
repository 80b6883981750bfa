#ifndef ANNULUS_TESTS_TUNED_GPUS_H_
#define ANNULUS_TESTS_TUNED_GPUS_H_

// GPUs that are not in this machine, for tests of searches for them.

#include "attention/kernels/device_limits.h"
#include "attention/kernels/kernel_config.h"
#include "device/device_info.h"

namespace annulus::test {

// The properties of an A100, an A40 or an H200 as their drivers report them.
inline device::DeviceInfo gpu(int number) {
  device::DeviceInfo info;
  info.major = number / 10;
  info.minor = number % 10;
  info.multiprocessors = number == 80 ? 108 : number == 86 ? 84 : 132;
  info.max_threads_per_multiprocessor = number == 86 ? 1536 : 2048;
  info.max_blocks_per_multiprocessor = number == 86 ? 16 : 32;
  info.registers_per_multiprocessor = 65536;
  info.shared_bytes_per_block_optin = attention::shared_limit({number, '\0'});
  info.shared_bytes_per_multiprocessor = info.shared_bytes_per_block_optin + 1024;
  info.shared_bytes_reserved_per_block = 1024;
  info.clock_kilohertz = 1410000;
  info.memory_clock_kilohertz = 1593000;
  info.memory_bus_bits = 5120;
  return info;
}

inline attention::DeviceLimits limits_of_gpu(int number) {
  return {{number, '\0'}, gpu(number).multiprocessors, gpu(number).shared_bytes_per_block_optin};
}

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_TUNED_GPUS_H_
