// The symbols of the simulator's shared libraries. The file is compiled twice: for libcuda.so.1,
// which exports every line of provided.def and of absent.def, and for libannulus_simulator.so,
// which exports only the simulator's own functions. A program that links libannulus_simulator.so
// must not call a simulated driver by accident when it calls functions by CUDA's names.

#include "abi/parameters.h"
#include "annulus/simulator.h"
#include "simulator/driver/entries/absent.h"
#include "simulator/driver/entries/entries.h"

namespace {

namespace entry = annulus::simulator::driver::entry;
using annulus::abi::CUresult;

}  // namespace

// Defines one hidden C function for each entry, and an alias of the function for each of its
// symbols.
#define ENTRY(name, symbol, parameters)  \
  DEFINE(ANNULUS_COUNT parameters, name) \
  ALIAS(name, symbol)
#define ALIAS(name, symbol)                                       \
  extern "C" ANNULUS_EXPORT decltype(annulus_entry_##name) symbol \
      __attribute__((alias("annulus_entry_" #name)));
#define DEFINE(count, name) DEFINE_WITH(count, name)
#define DEFINE_WITH(count, name)                                                  \
  extern "C" __attribute__((visibility("hidden")))                                \
  CUresult annulus_entry_##name(ANNULUS_DECLARE_##count(decltype(entry::name))) { \
    return entry::name(ANNULUS_PASS_##count);                                     \
  }
#include "simulator/driver/entries/provided.def"

#define ABSENT(symbol)                                   \
  extern "C" ANNULUS_EXPORT CUresult symbol() {          \
    return annulus::simulator::driver::absent::symbol(); \
  }
#include "simulator/driver/entries/absent.def"
