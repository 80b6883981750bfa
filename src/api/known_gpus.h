#ifndef ANNULUS_API_KNOWN_GPUS_H_
#define ANNULUS_API_KNOWN_GPUS_H_

// GPUs with known limits, so that kernels can be compiled for them on other machines.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "device/device_info.h"
#include "jit/arch.h"

namespace annulus::api {

// Facts of a GPU as drivers and data sheets state them.
struct GpuModel {
  const char* name;         // "a100"
  const char* description;  // description for people to read
  const char* driver_name;  // the name in the driver, by which tuned results are found
  int compute_capability;   // 80, 90, 120
  int multiprocessors;
  std::int64_t shared_bytes_per_block;
  int clock_kilohertz;
  int memory_clock_kilohertz;
  int memory_bus_bits;
  std::int64_t memory_bytes;
  std::int64_t l2_bytes;
};
std::span<const GpuModel> gpu_models();

// The facts of a model that planning, predictions and tuned results need. The other fields are 0.
device::DeviceInfo info_of(const GpuModel& model);

// A GPU for which kernels are compiled or planned.
struct KnownTarget {
  const GpuModel* model;
  jit::Arch arch;
};

// The GPUs that a word names: one GPU by its name, or all GPUs of an architecture. A GPU of sm_90a
// runs kernels for sm_90 if its driver has no tensor maps. Throws Error{kInvalidArgument} for any
// other word.
std::vector<KnownTarget> known_targets(std::string_view word);

// The best architecture that a GPU of this model runs if its driver supports tensor maps.
jit::Arch architecture_of(const GpuModel& model);

}  // namespace annulus::api

#endif  // ANNULUS_API_KNOWN_GPUS_H_
