// Compiled only where cuda.h is found: what libcuda.so.1 exports against NVIDIA's declarations.

#include <cuda.h>
#include <cudaProfiler.h>

#include "abi/signature.h"
#include "sim/driver/entries.h"

namespace annulus::sim::driver {

// The simulator's own functions are in no header of NVIDIA's.
abi::CUresult annulusSimulatorVersion(int*);
abi::CUresult annulusSimulatorSetOptions(abi::CUdevice, const abi::SimulatorOptions*);
abi::CUresult annulusSimulatorGetOptions(abi::CUdevice, abi::SimulatorOptions*);
abi::CUresult annulusSimulatorCounters(abi::CUdevice, abi::SimulatorCounters*, int);
abi::CUresult annulusSimulatorLastFault(abi::CUdevice, char*, std::size_t);
abi::CUresult annulusSimulatorClearFault(abi::CUdevice);

// That a function is deprecated does not keep programs from calling it.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#define EXPORT(count, symbol, name)                                             \
  static_assert(abi::same_signature_v<decltype(entry::name), decltype(symbol)>, \
                "sim/driver/exports.def disagrees with cuda.h about " #symbol);
#define ALIAS(count, symbol, name)
#include "sim/driver/exports.def"

static_assert(sizeof(entry::LaunchConfig) == sizeof(CUlaunchConfig));
static_assert(offsetof(entry::LaunchConfig, stream) == offsetof(CUlaunchConfig, hStream));
static_assert(offsetof(entry::LaunchConfig, attributes) == offsetof(CUlaunchConfig, attrs));

}  // namespace annulus::sim::driver
