#ifndef ANNULUS_DEVICE_DEVICE_INFO_H_
#define ANNULUS_DEVICE_DEVICE_INFO_H_

// The properties and limits of a device. They are read from the driver's attributes and never
// derived from a name or a table of products.

#include <cstdint>
#include <string>
#include <vector>

#include "device/driver.h"

namespace annulus::device {

struct DeviceInfo {
  std::string name;  // the name that the driver reports
  int ordinal = 0;
  int major = 0;  // compute capability
  int minor = 0;
  bool simulated = false;
  bool tensor_maps = false;  // the device has tensor maps and the driver can encode them

  int multiprocessors = 0;
  int warp_size = 0;
  int max_threads_per_block = 0;
  int max_threads_per_multiprocessor = 0;
  int max_blocks_per_multiprocessor = 0;  // 0: the driver does not report it
  int registers_per_multiprocessor = 0;   // 32-bit registers
  int registers_per_block = 0;

  std::int64_t shared_bytes_per_block = 0;        // the limit without cuFuncSetAttribute
  std::int64_t shared_bytes_per_block_optin = 0;  // the limit after cuFuncSetAttribute
  std::int64_t shared_bytes_per_multiprocessor = 0;
  std::int64_t shared_bytes_reserved_per_block = 0;  // the part of each block that the driver uses
  std::int64_t l2_bytes = 0;
  std::int64_t memory_bytes = 0;

  int clock_kilohertz = 0;
  int memory_clock_kilohertz = 0;
  int memory_bus_bits = 0;

  int compute_capability() const { return 10 * major + minor; }  // 80, 90
};

// Throws Error{kInvalidArgument} if the driver has no such device.
DeviceInfo read_device_info(const Driver& driver, int ordinal);

// All devices, in the driver's order.
std::vector<DeviceInfo> list_devices(const Driver& driver);

}  // namespace annulus::device

#endif  // ANNULUS_DEVICE_DEVICE_INFO_H_
