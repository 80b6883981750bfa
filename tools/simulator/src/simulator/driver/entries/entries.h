#ifndef ANNULUS_SIMULATOR_DRIVER_ENTRIES_ENTRIES_H_
#define ANNULUS_SIMULATOR_DRIVER_ENTRIES_ENTRIES_H_

// The functions of the simulated driver: one for each slot of the table, with the name of its
// member, and those that only other programs use (provided.def). They are documented by CUDA under
// their symbols; docs/simulator.md says where this driver differs.

#include "abi/cuda_types.h"
#include "simulator/driver/entries/foreign_types.h"

namespace annulus::simulator::driver::entry {

using namespace annulus::abi;  // the declarations below use its types

struct Uuid {
  unsigned char bytes[16];
};

// CUlaunchAttribute and CUlaunchConfig. Attributes that only change how a GPU schedules are
// ignored; clusters and cooperative launches are understood.
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
