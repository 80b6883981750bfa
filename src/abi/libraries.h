#ifndef ANNULUS_ABI_LIBRARIES_H_
#define ANNULUS_ABI_LIBRARIES_H_

// Finds and opens the CUDA driver, NVRTC, NCCL and the simulator, which is another CUDA driver.
// Nothing is linked; a program starts on a machine that has none of them.
//
//   const CudaLibrary cuda = open_cuda(default_search(base::read_environment()));
//   check(cuda.table, cuda.table.init(0), "cuInit");
//
// The order is: the folders of ANNULUS_LIBRARY_PATH, the loader's own search, the CUDA toolkits
// below /usr/local, the folders of the pip wheels; for the simulator the folders beside this
// library come first. The first file that opens is taken. If it is too old or lacks a symbol, that
// is an error that names it, and no other file is tried. Versions of NVRTC that the driver is too
// old for come last.

#include <string>
#include <vector>

#include "abi/cuda_table.h"
#include "abi/nccl_table.h"
#include "abi/nvrtc_table.h"
#include "abi/shared_library.h"
#include "annulus/kernels.h"
#include "base/env.h"

namespace annulus::abi {

// The oldest versions supported, numbered as each library numbers itself.
constexpr int kMinimumCuda = 11000;   // CUDA 11.0, driver 450
constexpr int kMinimumNvrtc = 11020;  // 1000 major + 10 minor, as for the driver
constexpr int kMinimumNccl = 21400;   // 10000 major + 100 minor + patch

// Where to look. It is plain data, so that a test can name its own folders.
struct LibrarySearch {
  std::vector<std::string> beside;         // the folders around this library (abi/own_folders.h)
  std::vector<std::string> first;          // folders of ANNULUS_LIBRARY_PATH
  bool loader = true;                      // the loader's own search (ld.so.cache, LD_LIBRARY_PATH)
  std::vector<std::string> toolkits;       // roots of CUDA toolkits, newest first
  std::vector<std::string> site_packages;  // of Python installations, where wheels put libraries
};

// Looks for toolkits and Python installations in the file system; opens nothing.
LibrarySearch default_search(const base::Environment& environment);

// A table and the library that its pointers point into. All pointers are null where the report says
// that the library is not usable.
template <typename Table>
struct Library {
  Table table;
  SharedLibrary library;
  LibraryReport report;
};
using CudaLibrary = Library<CudaTable>;
using NvrtcLibrary = Library<NvrtcTable>;
using NcclLibrary = Library<NcclTable>;

// The find functions never throw for a library that is missing or unfit: report.problem says so.
// Asking a driver for its version does not initialise it.
CudaLibrary find_cuda(const LibrarySearch& search);
// libannulus_simulator.so, whose table is filled by annulusSimulatorEntry. A simulator of another
// version of annulus/simulator.h is unfit, here and behind libcuda.so.1.
CudaLibrary find_simulator(const LibrarySearch& search);
// `driver` is a version as cuDriverGetVersion numbers it. The first NVRTC is taken whose major
// version is not above the driver's, since the driver need not load the code of a later one. Where
// there is none, or with 0, the first of all is taken.
NvrtcLibrary find_nvrtc(const LibrarySearch& search, int driver = 0);
NcclLibrary find_nccl(const LibrarySearch& search);
// The NCCL of libannulus_simulator.so, for devices that it simulates.
NcclLibrary find_simulated_nccl(const LibrarySearch& search);

// The open functions throw Error{kLibrary} instead, with the problem and every place that was
// tried.
CudaLibrary open_cuda(const LibrarySearch& search);
CudaLibrary open_simulator(const LibrarySearch& search);
NvrtcLibrary open_nvrtc(const LibrarySearch& search, int driver = 0);
NcclLibrary open_nccl(const LibrarySearch& search);

// All of them: what find_libraries() tells.
LibraryReports report_libraries(const LibrarySearch& search);

// What somebody can do who lacks NVRTC: where it comes from, where it is looked for, and how to do
// without it, which is the second function's text.
std::string nvrtc_remedies();
std::string compile_ahead_remedy();

// 12080 -> "12.8"; for NCCL 22809 -> "2.28.9".
std::string cuda_version_text(int version);
std::string nccl_version_text(int version);

}  // namespace annulus::abi

#endif  // ANNULUS_ABI_LIBRARIES_H_
