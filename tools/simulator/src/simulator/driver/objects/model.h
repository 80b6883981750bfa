#ifndef ANNULUS_SIMULATOR_DRIVER_OBJECTS_MODEL_H_
#define ANNULUS_SIMULATOR_DRIVER_OBJECTS_MODEL_H_

// The properties that the simulated devices report. The numbers are those of a real GPU, so that
// plans made for the simulator are plans for that GPU.

#include <cstdint>
#include <span>

namespace annulus::simulator::driver {

struct DeviceModel {
  const char* architecture;  // "sm_80"
  int major;
  int minor;
  bool accelerated;  // sm_90a: launches clusters and supports tensor maps
  int multiprocessors;
  int shared_optin;   // the most bytes of shared memory that a block may have
  int shared_per_sm;  // bytes
  int l2_bytes;
  int clock_kilohertz;
  int memory_clock_kilohertz;
  int memory_bus_bits;
  std::uint64_t memory_bytes;
};

std::span<const DeviceModel> models();

std::uint64_t machine_memory();  // in bytes

// The memory that a device of this model reports: the memory of the GPU, but no more than this
// machine has. So an allocation that does not fit returns an error code and does not end the
// process.
std::uint64_t usable_memory(const DeviceModel& model);

// Stores the value of a CUdevice_attribute. Returns false if there is no such attribute.
bool attribute(const DeviceModel& model, int ordinal, int which, int* value);

constexpr int kSharedPerBlock = 49152;  // bytes of a block without opting in to more
constexpr int kSharedReserved = 1024;   // bytes that the driver takes from each block
constexpr int kMaxThreads = 1024;
constexpr int kMaxThreadsPerSm = 2048;
constexpr int kMaxBlocksPerSm = 32;
constexpr int kRegistersPerSm = 65536;
constexpr unsigned kMaxGridX = 2147483647;
constexpr unsigned kMaxGridYz = 65535;
constexpr unsigned kMaxBlockZ = 64;

}  // namespace annulus::simulator::driver

#endif  // ANNULUS_SIMULATOR_DRIVER_OBJECTS_MODEL_H_
