#ifndef ANNULUS_SIMULATOR_DRIVER_ENTRIES_ENTRIES_H_
#define ANNULUS_SIMULATOR_DRIVER_ENTRIES_ENTRIES_H_

// The functions of the simulated driver: one for each slot of the table, under the name of its
// member, and the functions that only other programs call (provided.def). CUDA documents them under
// their symbols. docs/simulator.md lists how this driver differs.

#include "abi/cuda_types.h"
#include "simulator/driver/entries/foreign_types.h"

namespace annulus::simulator::driver::entry {

using namespace annulus::abi;  // the declarations below use its types

struct Uuid {
  unsigned char bytes[16];
};

// CUlaunchAttribute and CUlaunchConfig. Attributes for clusters and cooperative launches take
// effect. Attributes that only change how a GPU schedules are ignored.
struct LaunchAttribute {
  int id;
  char pad[4];
  char value[64];
};

struct LaunchConfig {
  unsigned grid[3];
  unsigned block[3];
  unsigned dynamic_shared_bytes;
  CUstream stream;
  const LaunchAttribute* attributes;
  unsigned attribute_count;
};

#define ENTRY(name, symbol, parameters) CUresult name parameters;
#include "simulator/driver/entries/provided.def"

}  // namespace annulus::simulator::driver::entry

#endif  // ANNULUS_SIMULATOR_DRIVER_ENTRIES_ENTRIES_H_
