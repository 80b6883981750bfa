#include "device/device_info.h"

#include "abi/check.h"
#include "base/fail.h"

namespace annulus::device {

// Attributes that a plan needs must succeed. The others have defaults: tensor maps, which drivers
// before CUDA 12 do not support, and numbers that are only used for predictions. The pipe model
// works without these numbers (attention/cost/pipe_model.cc), so a device that does not report them
// is not refused.
DeviceInfo read_device_info(const Driver& driver, int ordinal) {
  if (ordinal < 0 || ordinal >= driver.device_count()) {
    base::fail(ErrorCode::kInvalidArgument, "device {} does not exist: {} has {} devices", ordinal,
               driver.name(), driver.device_count());
  }
  const abi::CudaTable& cuda = driver.table();
  abi::CUdevice device = 0;
  abi::check(cuda, cuda.device_get(&device, ordinal), "cuDeviceGet");
  const auto attribute = [&](int which) {
    int value = 0;
    abi::check(cuda, cuda.device_get_attribute(&value, which, device), "cuDeviceGetAttribute");
    return value;
  };
  // For attributes that a driver may not report.
  const auto attribute_or = [&](int which, int otherwise) {
    int value = 0;
    return cuda.device_get_attribute(&value, which, device) == abi::kCudaSuccess ? value
                                                                                 : otherwise;
  };

  DeviceInfo info;
  char name[256] = {};
  abi::check(cuda, cuda.device_get_name(name, sizeof(name) - 1, device), "cuDeviceGetName");
  info.name = name;
  info.ordinal = ordinal;
  info.major = attribute(abi::kAttributeComputeMajor);
  info.minor = attribute(abi::kAttributeComputeMinor);
  info.simulated = driver.simulator_version() != 0;
  info.tensor_maps =
      attribute_or(abi::kAttributeTensorMaps, 0) != 0 && cuda.tensor_map_encode_tiled != nullptr;
  info.multiprocessors = attribute(abi::kAttributeMultiprocessors);
  info.warp_size = attribute(abi::kAttributeWarpSize);
  info.max_threads_per_block = attribute(abi::kAttributeMaxThreadsPerBlock);
  info.max_threads_per_multiprocessor = attribute(abi::kAttributeMaxThreadsPerMultiprocessor);
  info.max_blocks_per_multiprocessor = attribute_or(abi::kAttributeMaxBlocksPerMultiprocessor, 0);
  info.registers_per_multiprocessor = attribute(abi::kAttributeMaxRegistersPerMultiprocessor);
  info.registers_per_block = attribute(abi::kAttributeMaxRegistersPerBlock);
  info.shared_bytes_per_block = attribute(abi::kAttributeMaxSharedPerBlock);
  info.shared_bytes_per_block_optin = attribute(abi::kAttributeMaxSharedPerBlockOptin);
  info.shared_bytes_per_multiprocessor = attribute(abi::kAttributeMaxSharedPerMultiprocessor);
  info.shared_bytes_reserved_per_block = attribute_or(abi::kAttributeReservedSharedPerBlock, 0);
  info.l2_bytes = attribute(abi::kAttributeL2Bytes);
  std::size_t bytes = 0;
  abi::check(cuda, cuda.device_total_mem(&bytes, device), "cuDeviceTotalMem");
  info.memory_bytes = static_cast<std::int64_t>(bytes);
  info.clock_kilohertz = attribute_or(abi::kAttributeClockKilohertz, 0);
  info.memory_clock_kilohertz = attribute_or(abi::kAttributeMemoryClockKilohertz, 0);
  info.memory_bus_bits = attribute_or(abi::kAttributeMemoryBusBits, 0);
  return info;
}

std::vector<DeviceInfo> list_devices(const Driver& driver) {
  std::vector<DeviceInfo> all;
  for (int ordinal = 0; ordinal < driver.device_count(); ++ordinal) {
    all.push_back(read_device_info(driver, ordinal));
  }
  return all;
}

}  // namespace annulus::device
