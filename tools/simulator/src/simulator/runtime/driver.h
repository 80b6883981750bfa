#ifndef ANNULUS_SIMULATOR_RUNTIME_DRIVER_H_
#define ANNULUS_SIMULATOR_RUNTIME_DRIVER_H_

// The driver below the runtime: a libcuda.so.1. It is the simulated driver if this library is in
// its folder. The runtime uses it only through CUDA's symbols.

#include <cstdint>

#include "simulator/runtime/types.h"

namespace annulus::simulator::runtime {

// Thrown inside a function of the runtime to end the function with a code. It never leaves the
// library.
struct Refusal {
  Error code;
};

// Thrown for a call of a function that the driver does not have.
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

// The driver, opened and initialised at the first call. Throws Refusal if there is none
// (cudaErrorInsufficientDriver), or with the code of cuInit.
const DriverTable& driver();

// The driver without cuInit, or null if there is none.
const DriverTable* find_driver();

// Throws Refusal if `code`, which a call of the driver returned, is an error.
void need(CUresult code);

}  // namespace annulus::simulator::runtime

#endif  // ANNULUS_SIMULATOR_RUNTIME_DRIVER_H_
