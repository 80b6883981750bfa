#ifndef ANNULUS_SIMULATOR_DRIVER_OBJECTS_FATBIN_H_
#define ANNULUS_SIMULATOR_DRIVER_OBJECTS_FATBIN_H_

// Fat binaries: the PTX and the compiled code for each architecture that nvcc puts into a program.
// CUDA does not document the format. These are the parts of it that lead to the PTX, as found in
// the output of nvcc 11 to 13:
//
//   | 0xba55ed50 : 4 | version : 2 | bytes of this header : 2 | bytes of all entries : 8 |
// Then the entries follow one another. Each begins with
//   | kind : 2 | version : 2 | bytes of this header : 4 | bytes of the payload : 8 |
//   | bytes of the compressed text : 4 | ... | at 28 architecture : 4 | at 40 flags : 8 |
//   | at 56 bytes of the uncompressed text : 8 |
//
// A registered fat binary is reached through a wrapper, | 0x466243b1 : 4 | version : 4 | pointer :
// 8 | ....

#include <string>
#include <vector>

namespace annulus::simulator::driver {

// Whether the bytes begin a fat binary or its wrapper. It reads four bytes, or fewer if it meets a
// NUL.
bool is_fatbin(const void* image);

struct FatbinTexts {
  std::vector<std::string> ptx;
  int binaries = 0;   // compiled code for GPUs, which no simulated device runs
  std::string wrong;  // why the other entries were not read; empty if all were
};

// The PTX texts of a fat binary. Its sizes are checked only against one another, because a pointer
// alone does not give the size of the memory.
FatbinTexts read_fatbin(const void* image);

}  // namespace annulus::simulator::driver

#endif  // ANNULUS_SIMULATOR_DRIVER_OBJECTS_FATBIN_H_
