#include "api/known_gpus.h"

#include "base/fail.h"

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
    {.name = "a10",
     .description = "A10",
     .driver_name = "NVIDIA A10",
     .compute_capability = 86,
     .multiprocessors = 72,
     .shared_bytes_per_block = 101376,
     .clock_kilohertz = 1695000,
     .memory_clock_kilohertz = 6251000,
     .memory_bus_bits = 384,
     .memory_bytes = 22731 * kMiB,
     .l2_bytes = 6 * kMiB},
    {.name = "a30",
     .description = "A30",
     .driver_name = "NVIDIA A30",
     .compute_capability = 80,
     .multiprocessors = 56,
     .shared_bytes_per_block = 166912,
     .clock_kilohertz = 1440000,
     .memory_clock_kilohertz = 1215000,
     .memory_bus_bits = 3072,
     .memory_bytes = 24062 * kMiB,
     .l2_bytes = 24 * kMiB},
    {.name = "a40",
     .description = "A40",
     .driver_name = "NVIDIA A40",
     .compute_capability = 86,
     .multiprocessors = 84,
     .shared_bytes_per_block = 101376,
     .clock_kilohertz = 1740000,
     .memory_clock_kilohertz = 7251000,
     .memory_bus_bits = 384,
     .memory_bytes = 45634 * kMiB,
     .l2_bytes = 6 * kMiB},
    {.name = "rtx3090",
     .description = "GeForce RTX 3090",
     .driver_name = "NVIDIA GeForce RTX 3090",
     .compute_capability = 86,
     .multiprocessors = 82,
     .shared_bytes_per_block = 101376,
     .clock_kilohertz = 1695000,
     .memory_clock_kilohertz = 9751000,
     .memory_bus_bits = 384,
     .memory_bytes = 24124 * kMiB,
     .l2_bytes = 6 * kMiB},
    {.name = "l4",
     .description = "L4",
     .driver_name = "NVIDIA L4",
     .compute_capability = 89,
     .multiprocessors = 58,
     .shared_bytes_per_block = 101376,
     .clock_kilohertz = 2040000,
     .memory_clock_kilohertz = 6251000,
     .memory_bus_bits = 192,
     .memory_bytes = 22563 * kMiB,
     .l2_bytes = 48 * kMiB},
    {.name = "l40s",
     .description = "L40S",
     .driver_name = "NVIDIA L40S",
     .compute_capability = 89,
     .multiprocessors = 142,
     .shared_bytes_per_block = 101376,
     .clock_kilohertz = 2520000,
     .memory_clock_kilohertz = 9001000,
     .memory_bus_bits = 384,
     .memory_bytes = 45458 * kMiB,
     .l2_bytes = 96 * kMiB},
    {.name = "rtx4090",
     .description = "GeForce RTX 4090",
     .driver_name = "NVIDIA GeForce RTX 4090",
     .compute_capability = 89,
     .multiprocessors = 128,
     .shared_bytes_per_block = 101376,
     .clock_kilohertz = 2520000,
     .memory_clock_kilohertz = 10501000,
     .memory_bus_bits = 384,
     .memory_bytes = 24081 * kMiB,
     .l2_bytes = 72 * kMiB},
    {.name = "gh200",
     .description = "GH200, 96 GB",
     .driver_name = "NVIDIA GH200 480GB",
     .compute_capability = 90,
     .multiprocessors = 132,
     .shared_bytes_per_block = 232448,
     .clock_kilohertz = 1980000,
     .memory_clock_kilohertz = 2619000,
     .memory_bus_bits = 6144,
     .memory_bytes = 97280 * kMiB,
     .l2_bytes = 60 * kMiB},
    {.name = "h20",
     .description = "H20",
     .driver_name = "NVIDIA H20",
     .compute_capability = 90,
     .multiprocessors = 78,
     .shared_bytes_per_block = 232448,
     .clock_kilohertz = 1980000,
     .memory_clock_kilohertz = 2619000,
     .memory_bus_bits = 6144,
     .memory_bytes = 97280 * kMiB,
     .l2_bytes = 60 * kMiB},
    {.name = "b200",
     .description = "B200",
     .driver_name = "NVIDIA B200",
     .compute_capability = 100,
     .multiprocessors = 148,
     .shared_bytes_per_block = 232448,
     .clock_kilohertz = 1965000,
     .memory_clock_kilohertz = 3996000,
     .memory_bus_bits = 7680,
     .memory_bytes = 182630 * kMiB,
     .l2_bytes = 126 * kMiB},
    {.name = "b300",
     .description = "B300",
     .driver_name = "NVIDIA B300 SXM6 AC",
     .compute_capability = 103,
     .multiprocessors = 148,
     .shared_bytes_per_block = 232448,
     .clock_kilohertz = 2032000,
     .memory_clock_kilohertz = 3996000,
     .memory_bus_bits = 7680,
     .memory_bytes = 275040 * kMiB,
     .l2_bytes = 126 * kMiB},
    {.name = "rtx5090",
     .description = "GeForce RTX 5090",
     .driver_name = "NVIDIA GeForce RTX 5090",
     .compute_capability = 120,
     .multiprocessors = 170,
     .shared_bytes_per_block = 101376,
     .clock_kilohertz = 2407000,
     .memory_clock_kilohertz = 14001000,
     .memory_bus_bits = 512,
     .memory_bytes = 32120 * kMiB,
     .l2_bytes = 96 * kMiB},
    {.name = "gb10",
     .description = "GB10 (DGX Spark)",
     .driver_name = "NVIDIA GB10",
     .compute_capability = 121,
     .multiprocessors = 48,
     .shared_bytes_per_block = 101376,
     .clock_kilohertz = 2418000,
     .memory_clock_kilohertz = 4266000,
     .memory_bus_bits = 256,
     .memory_bytes = 122560 * kMiB,
     .l2_bytes = 24 * kMiB},
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
  // All devices of a compute capability have these limits (CUDA C++ Programming Guide, technical
  // specifications per compute capability).
  const int capability = model.compute_capability;
  const bool large = capability == 80 || capability == 90 || capability / 10 == 10;
  info.max_threads_per_multiprocessor = large ? 2048 : 1536;
  info.max_blocks_per_multiprocessor = large ? 32 : capability == 86 ? 16 : 24;
  info.registers_per_multiprocessor = 65536;
  info.shared_bytes_reserved_per_block = 1024;
  info.shared_bytes_per_multiprocessor =
      model.shared_bytes_per_block + info.shared_bytes_reserved_per_block;
  info.l2_bytes = model.l2_bytes;
  info.memory_bytes = model.memory_bytes;
  info.clock_kilohertz = model.clock_kilohertz;
  info.memory_clock_kilohertz = model.memory_clock_kilohertz;
  info.memory_bus_bits = model.memory_bus_bits;
  return info;
}

std::vector<KnownTarget> known_targets(std::string_view word) {
  std::vector<KnownTarget> targets;
  std::string names;
  for (const GpuModel& model : gpu_models()) {
    const jit::Arch best = architecture_of(model);
    const jit::Arch plain = jit::arch_of_capability(info_of(model).major, info_of(model).minor);
    const jit::Arch arch = word == jit::to_string(plain) ? plain : best;
    if (word == model.name || word == jit::to_string(arch)) targets.push_back({&model, arch});
    names += fmt::format("{} ({}), ", model.name, jit::to_string(best));
  }
  if (!targets.empty()) return targets;
  base::fail(
      ErrorCode::kInvalidArgument,
      "'{}' is not the name of a known GPU; give {}or an architecture of these; devices of this "
      "machine are named as cuda:0, simulated ones as sim:sm_80",
      word, names);
}

jit::Arch architecture_of(const GpuModel& model) {
  const device::DeviceInfo info = info_of(model);
  return jit::arch_for_device(info.major, info.minor, info.tensor_maps, jit::kAnyNvrtc);
}

}  // namespace annulus::api
