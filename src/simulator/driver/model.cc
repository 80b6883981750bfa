#include "simulator/driver/model.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "abi/cuda_types.h"
#include "simulator/driver/driver.h"

namespace annulus::simulator {
namespace driver {
namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

constexpr DeviceModel kModels[] = {
    {"sm_80", 8, 0, false, 108, 166912, 167936, 40 << 20, 1410000, 1593000, 5120, 80 * kGiB},
    {"sm_90a", 9, 0, true, 132, 232448, 233472, 60 << 20, 1980000, 3201000, 6144, 141 * kGiB},
    {"sm_90", 9, 0, false, 132, 232448, 233472, 60 << 20, 1980000, 3201000, 6144, 141 * kGiB},
};

}  // namespace

std::span<const DeviceModel> models() { return kModels; }

std::uint64_t usable_memory(const DeviceModel& model) {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page <= 0) return std::min(model.memory_bytes, 4 * kGiB);
  const auto machine = static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page);
  return std::min(model.memory_bytes, machine);
}

bool attribute(const DeviceModel& model, int ordinal, int which, int* value) {
  switch (which) {
    case abi::kAttributeMaxThreadsPerBlock:
    case abi::kAttributeMaxBlockX:
    case abi::kAttributeMaxBlockY:
      *value = kMaxThreads;
      return true;
    case abi::kAttributeMaxBlockZ:
      *value = kMaxBlockZ;
      return true;
    case abi::kAttributeMaxGridX:
      *value = static_cast<int>(kMaxGridX);
      return true;
    case abi::kAttributeMaxGridY:
    case abi::kAttributeMaxGridZ:
      *value = static_cast<int>(kMaxGridYz);
      return true;
    case abi::kAttributeMaxSharedPerBlock:
      *value = kSharedPerBlock;
      return true;
    case abi::kAttributeConstantBytes:
      *value = 65536;
      return true;
    case abi::kAttributeWarpSize:
      *value = 32;
      return true;
    case abi::kAttributeMaxRegistersPerBlock:
    case abi::kAttributeMaxRegistersPerMultiprocessor:
      *value = kRegistersPerSm;
      return true;
    case abi::kAttributeClockKilohertz:
      *value = model.clock_kilohertz;
      return true;
    case abi::kAttributeMultiprocessors:
      *value = model.multiprocessors;
      return true;
    case abi::kAttributeMemoryClockKilohertz:
      *value = model.memory_clock_kilohertz;
      return true;
    case abi::kAttributeMemoryBusBits:
      *value = model.memory_bus_bits;
      return true;
    case abi::kAttributeL2Bytes:
      *value = model.l2_bytes;
      return true;
    case abi::kAttributeMaxThreadsPerMultiprocessor:
      *value = kMaxThreadsPerSm;
      return true;
    case abi::kAttributeAsyncEngines:
      *value = 3;
      return true;
    case abi::kAttributeConcurrentKernels:
    case abi::kAttributeUnifiedAddressing:
      *value = 1;
      return true;
    case abi::kAttributeComputeMajor:
      *value = model.major;
      return true;
    case abi::kAttributeComputeMinor:
      *value = model.minor;
      return true;
    case abi::kAttributeMaxSharedPerMultiprocessor:
      *value = model.shared_per_sm;
      return true;
    case abi::kAttributeMaxSharedPerBlockOptin:
      *value = model.shared_optin;
      return true;
    case abi::kAttributeMaxBlocksPerMultiprocessor:
      *value = kMaxBlocksPerSm;
      return true;
    case abi::kAttributeReservedSharedPerBlock:
      *value = kSharedReserved;
      return true;
    case abi::kAttributePciBus:
      *value = ordinal + 1;
      return true;
    case abi::kAttributeClusterLaunch:
    case abi::kAttributeTensorMaps:
      *value = model.accelerated ? 1 : 0;
      return true;
    // Everything else that is an attribute at all is a feature that this driver lacks.
    default:
      *value = 0;
      return which >= 1 && which < 160;
  }
}

}  // namespace driver

int first_ordinal(const char* architecture) {
  const auto all = driver::models();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (std::strcmp(all[i].architecture, architecture) == 0) {
      return static_cast<int>(i) * kDevicesPerModel;
    }
  }
  return -1;
}

}  // namespace annulus::simulator
