#ifndef ANNULUS_TOOLS_BENCH_GPU_STATE_H_
#define ANNULUS_TOOLS_BENCH_GPU_STATE_H_

// Clocks, power and temperature of a GPU while it works. They are read from NVML
// (libnvidia-ml.so.1, NVIDIA Management Library API reference), which is opened at run time.

#include <optional>
#include <string>

namespace annulus::bench {

struct GpuState {
  unsigned sm_megahertz = 0;
  unsigned memory_megahertz = 0;
  unsigned milliwatts = 0;
  unsigned celsius = 0;
};

class GpuMonitor {
 public:
  // Takes the device's PCI address, such as "0000:1b:00.0". Without NVML the monitor reads nothing.
  explicit GpuMonitor(const std::string& pci_bus);
  ~GpuMonitor();
  GpuMonitor(const GpuMonitor&) = delete;
  GpuMonitor& operator=(const GpuMonitor&) = delete;

  std::optional<GpuState> read() const;

 private:
  void* library_ = nullptr;
  void* device_ = nullptr;
};

}  // namespace annulus::bench

#endif  // ANNULUS_TOOLS_BENCH_GPU_STATE_H_
