#ifndef ANNULUS_BENCH_GPU_OPERANDS_H_
#define ANNULUS_BENCH_GPU_OPERANDS_H_

// Operands in device memory for a measured problem, and the PCI address of the device.

#include <cstdint>
#include <string>
#include <vector>

#include "annulus/device.h"

namespace annulus::bench {

// Standard normal numbers of a dtype of Q, K and V. Four million numbers are drawn and repeated,
// which is fast. A kernel never holds that many at a time, so they are random to it. Call it on one
// thread only.
DeviceMemory random_memory(const Device& device, Dtype dtype, std::size_t elements);

// Q, K, V and O of a problem, [B, S, H, D]. Q, K and V are random, and the scales of e4m3 are 1.
class GpuOperands {
 public:
  GpuOperands(const Device& device, const Problem& problem);

  const Operands& get() const { return operands_; }
  // Fills O, which has 16 bits per element, with NaN. So elements that a kernel does not write are
  // visible.
  void forget_output();
  std::vector<std::uint16_t> output() const;

 private:
  Device device_;
  DeviceMemory inputs_, output_;
  std::size_t output_elements_ = 0;
  Operands operands_;
};

// The PCI address in the form of NVML: "0000:1b:00.0".
std::string pci_bus(const Device& device);

}  // namespace annulus::bench

#endif  // ANNULUS_BENCH_GPU_OPERANDS_H_
