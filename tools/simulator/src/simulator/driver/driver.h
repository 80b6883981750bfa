#ifndef ANNULUS_SIMULATOR_DRIVER_DRIVER_H_
#define ANNULUS_SIMULATOR_DRIVER_DRIVER_H_

// The simulated GPUs as a CUDA driver: the same table that libcuda.so.1 fills.
//
//   device::Driver driver(simulator::make_cuda_table(), "the simulator");
//
// This is for tests that have the simulator linked into them. All others open it as a shared
// library (abi::find_simulator), and a process uses one of the two.
//
// There are twenty-four devices, made when they are first used:
//
//   ordinal   0 ... 7    sim:sm_80:0  ... sim:sm_80:7     limits of an A100
//   ordinal   8 ... 15   sim:sm_90a:0 ... sim:sm_90a:7    limits of an H200
//   ordinal  16 ... 23   sim:sm_90:0  ... sim:sm_90:7     an H200 without what sm_90a adds
//
// It behaves like a driver. It returns codes and throws nothing, any thread may call it, handles
// that are no longer valid are refused, and a kernel that faults breaks its context for good (until
// annulusSimulatorClearFault). One process has one such driver, as it has one libcuda.
//
// Work on a stream runs at the call that queues it, or, where the options say so, later and in an
// order drawn from the seed among all that the streams' edges allow. Modules are PTX text; a cubin
// is refused with CUDA_ERROR_NO_BINARY_FOR_GPU. What goes wrong inside a kernel or in the text of a
// module is kept as JSON for annulusSimulatorLastFault. docs/simulator.md says more.

#include "abi/cuda_table.h"
#include "annulus/simulator.h"

namespace annulus::simulator {

constexpr int kDevicesPerModel = ANNULUS_SIMULATOR_DEVICES;

// A table whose slots are all filled, the optional ones too.
abi::CudaTable make_cuda_table();

// The first ordinal of the simulated devices of an architecture ("sm_80", "sm_90a"), or -1.
int first_ordinal(const char* architecture);

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_DRIVER_DRIVER_H_
