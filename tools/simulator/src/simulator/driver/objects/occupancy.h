#ifndef ANNULUS_SIMULATOR_DRIVER_OBJECTS_OCCUPANCY_H_
#define ANNULUS_SIMULATOR_DRIVER_OBJECTS_OCCUPANCY_H_

// How many CTAs of a kernel can be resident at a time.

#include <cstddef>
#include <cstdint>

#include "simulator/driver/objects/model.h"
#include "simulator/program/program.h"

namespace annulus::simulator::driver {

// The number for a multiprocessor, from its threads, registers, shared memory and slots for CTAs.
// The registers are an estimate (KernelInfo::registers), under which one CTA fits in any case.
// Requires: threads > 0.
int blocks_per_sm(const DeviceModel& model, const KernelInfo& info, std::uint32_t threads,
                  std::size_t dynamic_shared_bytes);

// The number for the device, where a cluster takes as many multiprocessors as it needs.
std::uint64_t blocks_per_device(const DeviceModel& model, const KernelInfo& info,
                                std::uint32_t threads, std::size_t dynamic_shared_bytes);

}  // namespace annulus::simulator::driver

#endif  // ANNULUS_SIMULATOR_DRIVER_OBJECTS_OCCUPANCY_H_
