#ifndef ANNULUS_SIMULATOR_DRIVER_OBJECTS_LAUNCH_CALL_H_
#define ANNULUS_SIMULATOR_DRIVER_OBJECTS_LAUNCH_CALL_H_

// A launch that a call or a node of a graph describes, checked and with its parameters copied.

#include <memory>
#include <vector>

#include "simulator/driver/entries/entries.h"
#include "simulator/driver/objects/state.h"
#include "simulator/run/launch.h"

namespace annulus::simulator::driver {

// The values of CUlaunchAttributeID that this driver supports.
enum : int { kLaunchCooperative = 2, kLaunchCluster = 4 };

struct KernelCall {
  std::shared_ptr<Function> function;
  abi::CUfunction handle = nullptr;  // the program's handle, of a function or of a kernel
  LaunchRequest launch;              // without its parameters
  std::vector<std::byte> parameters;
};

constexpr std::uint32_t kMaxPortableCluster = 8;

// A launch without parameters, of which only the shape is checked.
KernelCall read_shape(const entry::LaunchConfig& config, abi::CUfunction function);
// A launch with its parameters. Throws Refusal if a CUDA driver would refuse the launch.
KernelCall read_call(const entry::LaunchConfig& config, abi::CUfunction function, void** parameters,
                     void** extra);

Work kernel_work(const std::shared_ptr<const KernelCall>& call);

}  // namespace annulus::simulator::driver

#endif  // ANNULUS_SIMULATOR_DRIVER_OBJECTS_LAUNCH_CALL_H_
