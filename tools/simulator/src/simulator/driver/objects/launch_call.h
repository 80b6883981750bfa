#ifndef ANNULUS_SIMULATOR_DRIVER_OBJECTS_LAUNCH_CALL_H_
#define ANNULUS_SIMULATOR_DRIVER_OBJECTS_LAUNCH_CALL_H_

// A launch as a call or a node of a graph asks for it: checked, and with its parameters copied.

#include <memory>
#include <vector>

#include "simulator/driver/entries/entries.h"
#include "simulator/driver/objects/state.h"
#include "simulator/run/launch.h"

namespace annulus::simulator::driver {

// CUlaunchAttributeID, of those that are understood.
enum : int { kLaunchCooperative = 2, kLaunchCluster = 4 };

struct KernelCall {
  std::shared_ptr<Function> function;
  abi::CUfunction handle = nullptr;  // as the program gave it: a function's or a kernel's
  LaunchRequest launch;              // without its parameters
  std::vector<std::byte> parameters;
};

constexpr std::uint32_t kMaxPortableCluster = 8;

// A launch without parameters, of which the shape alone is checked.
KernelCall read_shape(const entry::LaunchConfig& config, abi::CUfunction function);
// Throws Refusal where a driver would refuse the launch.
KernelCall read_call(const entry::LaunchConfig& config, abi::CUfunction function, void** parameters,
                     void** extra);

Work kernel_work(const std::shared_ptr<const KernelCall>& call);

}  // namespace annulus::simulator::driver

#endif  // ANNULUS_SIMULATOR_DRIVER_OBJECTS_LAUNCH_CALL_H_
