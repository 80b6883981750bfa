#ifndef ANNULUS_SIMULATOR_DRIVER_OBJECTS_OCCUPANCY_H_
#define ANNULUS_SIMULATOR_DRIVER_OBJECTS_OCCUPANCY_H_

// How many CTAs of a kernel live at a time.

#include <cstddef>
#include <cstdint>

#include "simulator/driver/objects/model.h"
#include "simulator/program/program.h"

namespace annulus::simulator::driver {

// On a multiprocessor, by threads, registers, shared memory and slots for CTAs. The registers are
// an estimate (KernelInfo::registers), which lets one CTA fit in any case. Requires: threads > 0.
int blocks_per_sm(const DeviceModel& model, const KernelInfo& info, std::uint32_t threads,
                  std::size_t dynamic_shared_bytes);

// On the device, where a cluster is on as many multiprocessors as it needs.
std::uint64_t blocks_per_device(const DeviceModel& model, const KernelInfo& info,
                                std::uint32_t threads, std::size_t dynamic_shared_bytes);

}  // namespace annulus::simulator::driver

#endif  // ANNULUS_SIMULATOR_DRIVER_OBJECTS_OCCUPANCY_H_
