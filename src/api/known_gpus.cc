#include "api/known_gpus.h"

namespace annulus::api {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

constexpr GpuModel kModels[] = {
    {.name = "a100",
     .description = "A100 SXM 80 GB",
     .driver_name = "NVIDIA A100-SXM4-80GB",
     .compute_capability = 80,
     .multiprocessors = 108,
     .shared_bytes_per_block = 166912,
     .clock_kilohertz = 1410000,
     .memory_clock_kilohertz = 1593000,
     .memory_bus_bits = 5120,
     .memory_bytes = 81153 * kMiB,
     .l2_bytes = 40 * kMiB},
    {.name = "h100",
     .description = "H100 SXM",
     .driver_name = "NVIDIA H100 80GB HBM3",
     .compute_capability = 90,
     .multiprocessors = 132,
     .shared_bytes_per_block = 232448,
     .clock_kilohertz = 1980000,
     .memory_clock_kilohertz = 2619000,
     .memory_bus_bits = 5120,
     .memory_bytes = 81089 * kMiB,
     .l2_bytes = 50 * kMiB},
    {.name = "h200",
     .description = "H200",
     .driver_name = "NVIDIA H200",
     .compute_capability = 90,
     .multiprocessors = 132,
     .shared_bytes_per_block = 232448,
     .clock_kilohertz = 1980000,
     .memory_clock_kilohertz = 3201000,
     .memory_bus_bits = 6144,
     .memory_bytes = 143156 * kMiB,
     .l2_bytes = 60 * kMiB},
};

}  // namespace

std::span<const GpuModel> gpu_models() { return kModels; }

device::DeviceInfo info_of(const GpuModel& model) {
  device::DeviceInfo info;
  info.name = model.driver_name;
  info.major = model.compute_capability / 10;
  info.minor = model.compute_capability % 10;
  info.tensor_maps = model.compute_capability == 90;
  info.multiprocessors = model.multiprocessors;
  info.shared_bytes_per_block_optin = model.shared_bytes_per_block;
  info.l2_bytes = model.l2_bytes;
  info.memory_bytes = model.memory_bytes;
  info.clock_kilohertz = model.clock_kilohertz;
  info.memory_clock_kilohertz = model.memory_clock_kilohertz;
  info.memory_bus_bits = model.memory_bus_bits;
  return info;
}

jit::Arch architecture_of(const GpuModel& model) {
  const device::DeviceInfo info = info_of(model);
  return jit::arch_for_device(info.major, info.minor, info.tensor_maps, jit::kAnyNvrtc);
}

}  // namespace annulus::api
