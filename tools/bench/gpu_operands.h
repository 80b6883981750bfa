#ifndef ANNULUS_BENCH_GPU_OPERANDS_H_
#define ANNULUS_BENCH_GPU_OPERANDS_H_

// Operands in device memory for a problem that is measured, and the PCI address of the device.

#include <cstdint>
#include <string>
#include <vector>

#include "annulus/device.h"

namespace annulus::bench {

// Standard normal numbers of a dtype of Q, K and V. Four million of them are drawn and repeated,
// which is quick and still random to a kernel that never holds as many at a time. For one thread.
DeviceMemory random_memory(const Device& device, Dtype dtype, std::size_t elements);

// Q, K, V and O of a problem, [B, S, H, D]; Q, K and V are random, and the scales of e4m3 are 1.
class GpuOperands {
 public:
  GpuOperands(const Device& device, const Problem& problem);

  const Operands& get() const { return operands_; }
  // Overwrites O, which has 16 bits an element, with NaN, so that elements which a kernel does not
  // write show.
  void forget_output();
  std::vector<std::uint16_t> output() const;

 private:
  Device device_;
  DeviceMemory inputs_, output_;
  std::size_t output_elements_ = 0;
  Operands operands_;
};

// The PCI address in NVML's form: "0000:1b:00.0".
std::string pci_bus(const Device& device);

}  // namespace annulus::bench

#endif  // ANNULUS_BENCH_GPU_OPERANDS_H_
