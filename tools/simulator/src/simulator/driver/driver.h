#ifndef ANNULUS_SIMULATOR_DRIVER_DRIVER_H_
#define ANNULUS_SIMULATOR_DRIVER_DRIVER_H_

// The simulated GPUs as a CUDA driver: the same table of functions that libcuda.so.1 fills.
//
//   device::Driver driver(simulator::make_cuda_table(), "the simulator");
//
// This header is for tests that have the simulator linked into them. All other programs open the
// simulator as a shared library (abi::find_simulator). A process uses only one of the two.
//
// There are twenty-four devices. Each is made when it is first used:
//
//   ordinal   0 ... 7    sim:sm_80:0  ... sim:sm_80:7     limits of an A100
//   ordinal   8 ... 15   sim:sm_90a:0 ... sim:sm_90a:7    limits of an H200
//   ordinal  16 ... 23   sim:sm_90:0  ... sim:sm_90:7     an H200 without what sm_90a adds
//
// The simulator behaves like a driver. It returns codes and throws nothing, and any thread may call
// it. It refuses handles that are no longer valid. A kernel that faults breaks its context until
// annulusSimulatorClearFault is called. A process has one simulated driver, as it has one libcuda.
//
// By default, work on a stream runs during the call that queues it. With the option `streams`, it
// runs later, in an order that is drawn from the seed among all orders that the streams' edges
// allow. Modules are PTX text; a cubin is refused with CUDA_ERROR_NO_BINARY_FOR_GPU. The
// description of a fault in a kernel, or of an error in the text of a module, is kept as JSON for
// annulusSimulatorLastFault. docs/simulator.md has more.

#include "abi/cuda_table.h"
#include "annulus/simulator.h"

namespace annulus::simulator {

constexpr int kDevicesPerModel = ANNULUS_SIMULATOR_DEVICES;

// A table whose slots are all filled, including the optional ones.
abi::CudaTable make_cuda_table();

// The first ordinal of the simulated devices of an architecture ("sm_80", "sm_90a"), or -1 if there
// are none.
int first_ordinal(const char* architecture);

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_DRIVER_DRIVER_H_
