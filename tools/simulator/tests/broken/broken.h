#ifndef ANNULUS_SIMULATOR_TESTS_BROKEN_BROKEN_H_
#define ANNULUS_SIMULATOR_TESTS_BROKEN_BROKEN_H_

// Deliberately broken kernels, and correct ones that look suspicious. Each file of the folder holds
// the kernels of one subject. A kernel is compiled separately, together with the lines before the
// first kernel of its file. Marks in these lines hold for all kernels of the file. Marks state
// which fault checked mode must report, and at which lines it may do so:
//
//   // KERNEL missing_syncwarp                   the name, which begins the kernel
//   // EXPECT shared memory race | deadlock     any of these kinds; "nothing" for a correct kernel
//   // PROVEN nothing                            in the reading `proven`; without this line as EXPECT
//   // FAST nothing                              in the fast mode; without this line it is not run there,
//                                                 unless PROVEN expects nothing
//   // LAUNCH grid=2 block=128 shared=0 in=4096 out=4096 freed=0
//   // ANYLINE                                  the place is not checked
//   // ARCH sm_90a                              the architecture; without this line sm_80
//   // WITH products=2                          an option of the simulator
//   ... code ...                                // FAULT
//
// The kernel is `broken(const T* in, T* out)`. `in` holds 32-bit words 0, 1, 2, ...; `out` is
// memory that was never written. With map=1 there is a third parameter, a tensor map of `in`: rows
// of 32 words, in boxes of 8 rows, swizzled by 128 bytes.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace annulus::test {

struct BrokenKernel {
  std::string name;
  std::string file;    // its name without the folder
  std::string source;  // the lines of the other kernels of the file are blank
  std::set<std::string> expected;  // names of fault kinds; empty: none may be reported
  std::set<std::string> proven;    // the same for the option `reading=proven`
  bool fast = false;               // the fast mode runs it without a fault
  std::set<int> lines;
  bool any_line = false;
  std::string architecture = "sm_80";
  unsigned products = 0;  // SimulatorOptions::products
  std::map<std::string, unsigned> launch = {{"grid", 1},   {"block", 32},  {"shared", 0},
                                            {"in", 16384}, {"out", 16384}, {"freed", 0},
                                            {"map", 0}};
  bool is_ptx() const { return file.ends_with(".ptx"); }
};

// Reads the kernels of all files of the folder. Throws std::runtime_error for a file without a
// kernel, for a kernel whose marks are incomplete and for two kernels with one name.
std::vector<BrokenKernel> read_broken_kernels(const std::string& folder);

}  // namespace annulus::test

#endif  // ANNULUS_SIMULATOR_TESTS_BROKEN_BROKEN_H_
