#ifndef ANNULUS_SIMULATOR_RUNTIME_ENTRIES_H_
#define ANNULUS_SIMULATOR_RUNTIME_ENTRIES_H_

// The functions of the runtime, one for each line of functions.def. CUDA documents them under their
// symbols. docs/simulator.md lists how this runtime differs. The code that a function returns, or
// throws as a Refusal, becomes the last error of its thread (exports.cc).

#include "annulus/simulator.h"
#include "simulator/runtime/images.h"
#include "simulator/runtime/types.h"

namespace annulus::simulator::runtime::entry {

// CUpointer_attribute.
enum : int {
  kPointerMemoryType = 2,
  kPointerDevice = 3,
  kPointerHost = 4,
  kPointerManaged = 8,
  kPointerOrdinal = 9,
};

inline CUdeviceptr address(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

#define ENTRY(name, symbol, parameters) Error name parameters;
#define FORWARD(name, symbol, driver_symbol, parameters)
#include "simulator/runtime/functions.def"

}  // namespace annulus::simulator::runtime::entry

// Functions that do not return a code are declared under their symbols.
namespace annulus::simulator::runtime {
#define ENTRY(name, symbol, parameters)
#define FORWARD(name, symbol, driver_symbol, parameters)
#define RAW(result, symbol, parameters) extern "C" ANNULUS_EXPORT result symbol parameters;
#include "simulator/runtime/functions.def"
}  // namespace annulus::simulator::runtime

#endif  // ANNULUS_SIMULATOR_RUNTIME_ENTRIES_H_
