#include "simulator/driver/objects/model.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "abi/cuda_types.h"
#include "simulator/driver/driver.h"
#include "simulator/driver/entries/foreign_types.h"

namespace annulus::simulator {
namespace driver {
namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

constexpr DeviceModel kModels[] = {
    {"sm_80", 8, 0, false, 108, 166912, 167936, 40 << 20, 1410000, 1593000, 5120, 80 * kGiB},
    {"sm_90a", 9, 0, true, 132, 232448, 233472, 60 << 20, 1980000, 3201000, 6144, 141 * kGiB},
    {"sm_90", 9, 0, false, 132, 232448, 233472, 60 << 20, 1980000, 3201000, 6144, 141 * kGiB},
};

// The value of a CUdevice_attribute: a number that is the same for all models, or a member in which
// they differ.
struct Attribute {
  constexpr Attribute(int number, int fixed) : which(number), value(fixed) {}
  constexpr Attribute(int number, int DeviceModel::*own) : which(number), member(own) {}
  int which;
  int value = 0;
  int DeviceModel::*member = nullptr;
};

constexpr Attribute kAttributes[] = {
    {abi::kAttributeMaxThreadsPerBlock, kMaxThreads},
    {abi::kAttributeMaxBlockX, kMaxThreads},
    {abi::kAttributeMaxBlockY, kMaxThreads},
    {abi::kAttributeMaxBlockZ, kMaxBlockZ},
    {abi::kAttributeMaxGridX, kMaxGridX},
    {abi::kAttributeMaxGridY, kMaxGridYz},
    {abi::kAttributeMaxGridZ, kMaxGridYz},
    {abi::kAttributeMaxSharedPerBlock, kSharedPerBlock},
    {abi::kAttributeConstantBytes, 65536},
    {abi::kAttributeWarpSize, 32},
    {abi::kAttributeMaxRegistersPerBlock, kRegistersPerSm},
    {abi::kAttributeClockKilohertz, &DeviceModel::clock_kilohertz},
    {abi::kAttributeMultiprocessors, &DeviceModel::multiprocessors},
    {abi::kAttributeConcurrentKernels, 1},
    {abi::kAttributeMemoryClockKilohertz, &DeviceModel::memory_clock_kilohertz},
    {abi::kAttributeMemoryBusBits, &DeviceModel::memory_bus_bits},
    {abi::kAttributeL2Bytes, &DeviceModel::l2_bytes},
    {abi::kAttributeMaxThreadsPerMultiprocessor, kMaxThreadsPerSm},
    {abi::kAttributeAsyncEngines, 3},
    {abi::kAttributeUnifiedAddressing, 1},
    {abi::kAttributeComputeMajor, &DeviceModel::major},
    {abi::kAttributeComputeMinor, &DeviceModel::minor},
    {abi::kAttributeMaxSharedPerMultiprocessor, &DeviceModel::shared_per_sm},
    {abi::kAttributeMaxRegistersPerMultiprocessor, kRegistersPerSm},
    {abi::kAttributeCooperativeLaunch, 1},
    {abi::kAttributeMaxSharedPerBlockOptin, &DeviceModel::shared_optin},
    {abi::kAttributeMaxBlocksPerMultiprocessor, kMaxBlocksPerSm},
    {abi::kAttributeReservedSharedPerBlock, kSharedReserved},
    {abi::kAttributeMemoryPools, 1},
    {kAttributeTextureAlignment, 512},
    {kAttributeCanMapHostMemory, 1},
    {kAttributeManagedMemory, 1},
    {kAttributeConcurrentManagedAccess, 1},
    {kAttributeHostRegisterSameAddress, 1},
    {kAttributeHostRegister, 1},
};

}  // namespace

std::span<const DeviceModel> models() { return kModels; }

std::uint64_t machine_memory() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page <= 0) return 4 * kGiB;
  return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page);
}

std::uint64_t usable_memory(const DeviceModel& model) {
  return std::min(model.memory_bytes, machine_memory());
}

bool attribute(const DeviceModel& model, int ordinal, int which, int* value) {
  // Every other attribute is a feature that this driver does not have.
  *value = 0;
  for (const Attribute& known : kAttributes) {
    if (known.which == which) *value = known.member != nullptr ? model.*known.member : known.value;
  }
  if (which == abi::kAttributePciBus) *value = ordinal + 1;
  if (which == abi::kAttributeClusterLaunch || which == abi::kAttributeTensorMaps) {
    *value = model.accelerated ? 1 : 0;
  }
  return which >= 1 && which < 160;
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
