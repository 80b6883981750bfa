// Compares what libcuda.so.1 exports with NVIDIA's declarations. It is compiled only where cuda.h
// is found.

#include <cuda.h>
#include <cudaProfiler.h>

#include "abi/signature.h"
#include "annulus/simulator.h"
#include "simulator/driver/entries.h"

namespace annulus::simulator::driver {

// Deprecated functions are compared too, since programs still call them.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#define ENTRY(name, symbol, parameters)                                         \
  static_assert(abi::same_signature_v<decltype(entry::name), decltype(symbol)>, \
                "simulator/driver/provided.def disagrees with cuda.h about " #symbol);
#define OLDER(name, symbol, parameters)
#include "simulator/driver/provided.def"

static_assert(sizeof(entry::LaunchConfig) == sizeof(CUlaunchConfig));
static_assert(offsetof(entry::LaunchConfig, stream) == offsetof(CUlaunchConfig, hStream));
static_assert(offsetof(entry::LaunchConfig, attributes) == offsetof(CUlaunchConfig, attrs));

}  // namespace annulus::simulator::driver
