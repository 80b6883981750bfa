#ifndef ANNULUS_SIMULATOR_DRIVER_OBJECTS_FATBIN_H_
#define ANNULUS_SIMULATOR_DRIVER_OBJECTS_FATBIN_H_

// Fat binaries: what nvcc puts into a program for each architecture, PTX and compiled code. CUDA
// does not document the format; these are the parts of it that lead to the PTX, as found in the
// output of nvcc 11 to 13:
//
//   | 0xba55ed50 : 4 | version : 2 | bytes of this header : 2 | bytes of all entries : 8 |
//   and entries, one behind the other, of which each begins with
//   | kind : 2 | version : 2 | bytes of this header : 4 | bytes of the payload : 8 |
//   | bytes of the compressed text : 4 | ... | at 28 architecture : 4 | at 40 flags : 8 |
//   | at 56 bytes of the uncompressed text : 8 |
//
// A registered fat binary is behind a wrapper, | 0x466243b1 : 4 | version : 4 | pointer : 8 | ....

#include <string>
#include <vector>

namespace annulus::simulator::driver {

// Whether the bytes begin a fat binary or its wrapper. Reads four of them, or fewer behind a NUL.
bool is_fatbin(const void* image);

struct FatbinTexts {
  std::vector<std::string> ptx;
  int binaries = 0;   // compiled code for GPUs, which no simulated device runs
  std::string wrong;  // what kept the rest from being read; empty: nothing
};

// The PTX texts of a fat binary. Its sizes are believed as far as they fit into each other: a
// pointer alone says no more.
FatbinTexts read_fatbin(const void* image);

}  // namespace annulus::simulator::driver

#endif  // ANNULUS_SIMULATOR_DRIVER_OBJECTS_FATBIN_H_
