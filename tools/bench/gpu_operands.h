#ifndef ANNULUS_BENCH_GPU_OPERANDS_H_
#define ANNULUS_BENCH_GPU_OPERANDS_H_

// Operands in device memory for a problem that is measured, and the PCI address of the device.

#include <cstdint>
#include <string>
#include <vector>

#include "annulus/device.h"

namespace annulus::bench {

// Q, K, V and O of a problem in bf16, [B, S, H, D], random.
class GpuOperands {
 public:
  GpuOperands(const Device& device, const Problem& problem);

  const Operands& get() const { return operands_; }
  // Overwrites O with NaN, so that elements which a kernel does not write show.
  void forget_output();
  std::vector<std::uint16_t> output() const;

 private:
  Device device_;
  DeviceMemory memory_;
  std::size_t output_elements_ = 0;
  Operands operands_;
};

// The PCI address in NVML's form: "0000:1b:00.0".
std::string pci_bus(const Device& device);

}  // namespace annulus::bench

#endif  // ANNULUS_BENCH_GPU_OPERANDS_H_
