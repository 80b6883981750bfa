#include "gpu_state.h"

#include <dlfcn.h>

namespace annulus::bench {
namespace {

// nvmlClockType_t and nvmlTemperatureSensors_t
constexpr int kClockSm = 1;
constexpr int kClockMemory = 2;
constexpr int kTemperatureGpu = 0;

template <typename Function>
Function symbol(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

}  // namespace

GpuMonitor::GpuMonitor(const std::string& pci_bus)
    : library_(dlopen("libnvidia-ml.so.1", RTLD_NOW)) {
  if (library_ == nullptr) return;
  const auto init = symbol<int (*)()>(library_, "nvmlInit_v2");
  const auto find =
      symbol<int (*)(const char*, void**)>(library_, "nvmlDeviceGetHandleByPciBusId_v2");
  if (init == nullptr || find == nullptr || init() != 0 || find(pci_bus.c_str(), &device_) != 0) {
    device_ = nullptr;
  }
}

GpuMonitor::~GpuMonitor() {
  if (library_ != nullptr) dlclose(library_);
}

std::optional<GpuState> GpuMonitor::read() const {
  if (device_ == nullptr) return std::nullopt;
  GpuState state;
  const auto clock = symbol<int (*)(void*, int, unsigned*)>(library_, "nvmlDeviceGetClockInfo");
  const auto power = symbol<int (*)(void*, unsigned*)>(library_, "nvmlDeviceGetPowerUsage");
  const auto heat = symbol<int (*)(void*, int, unsigned*)>(library_, "nvmlDeviceGetTemperature");
  if (clock == nullptr || clock(device_, kClockSm, &state.sm_megahertz) != 0) return std::nullopt;
  clock(device_, kClockMemory, &state.memory_megahertz);
  if (power != nullptr) power(device_, &state.milliwatts);
  if (heat != nullptr) heat(device_, kTemperatureGpu, &state.celsius);
  return state;
}

}  // namespace annulus::bench
