#ifndef ANNULUS_SIMULATOR_RUNTIME_DRIVER_H_
#define ANNULUS_SIMULATOR_RUNTIME_DRIVER_H_

// The driver under the runtime: a libcuda.so.1, which is the simulated one where this library lies
// beside it, and is known by CUDA's symbols alone.

#include <cstdint>

#include "simulator/runtime/types.h"

namespace annulus::simulator::runtime {

// Thrown inside a function of the runtime to end it with a code. It never leaves the library.
struct Refusal {
  Error code;
};

// A function of the driver was called that the driver does not have.
struct Missing {
  const char* symbol;
};

template <typename Signature>
struct DriverFunction;
template <typename... Parameters>
struct DriverFunction<CUresult(Parameters...)> {
  const char* symbol;
  CUresult (*address)(Parameters...) = nullptr;

  CUresult operator()(Parameters... arguments) const {
    if (address == nullptr) throw Missing{symbol};
    return address(arguments...);
  }
  explicit operator bool() const { return address != nullptr; }
};

struct DriverTable {
#define DRIVER(member, symbol, parameters) DriverFunction<CUresult parameters> member{#symbol};
#include "simulator/runtime/driver.def"
#define ENTRY(name, symbol, parameters)
#define FORWARD(name, symbol, driver_symbol, parameters) \
  DriverFunction<CUresult parameters> name{#driver_symbol};
#include "simulator/runtime/functions.def"
};

// The driver, opened and initialised at the first call. Throws Refusal where there is none
// (cudaErrorInsufficientDriver), or with the code of cuInit.
const DriverTable& driver();

// The same before cuInit; null: there is no driver.
const DriverTable* find_driver();

// Throws Refusal where a call of the driver did not succeed.
void need(CUresult code);

}  // namespace annulus::simulator::runtime

#endif  // ANNULUS_SIMULATOR_RUNTIME_DRIVER_H_
