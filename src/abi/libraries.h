#ifndef ANNULUS_ABI_LIBRARIES_H_
#define ANNULUS_ABI_LIBRARIES_H_

// Finds and opens the CUDA driver, NVRTC, NCCL and the simulator, which is another CUDA driver.
// They are not linked, so a program also starts on a machine without them.
//
//   const CudaLibrary cuda = open_cuda(default_search(base::read_environment()));
//   check(cuda.table, cuda.table.init(0), "cuInit");
//
// The search order is: the folders of ANNULUS_LIBRARY_PATH, the loader's own search, the CUDA
// toolkits below /usr/local, the folders of pip wheels. For the simulator, the folders next to this
// library come first. The first file that can be opened is used. If it is too old or lacks a
// symbol, that is an error with the reason, and no other file is tried. Versions of NVRTC that are
// too new for the driver come last.

#include <string>
#include <vector>

#include "abi/cuda_table.h"
#include "abi/nccl_table.h"
#include "abi/nvrtc_table.h"
#include "abi/shared_library.h"
#include "annulus/kernels.h"
#include "base/env.h"

namespace annulus::abi {

// The oldest supported versions, in the numbering of each library.
constexpr int kMinimumCuda = 11000;   // CUDA 11.0, driver 450
constexpr int kMinimumNvrtc = 11020;  // 1000 major + 10 minor, as for the driver
constexpr int kMinimumNccl = 21400;   // 10000 major + 100 minor + patch

// The places to search. It is plain data, so that a test can set its own folders.
struct LibrarySearch {
  std::vector<std::string> beside;    // the folders next to this library (abi/own_folders.h)
  std::vector<std::string> first;     // folders of ANNULUS_LIBRARY_PATH
  bool loader = true;                 // the loader's own search (ld.so.cache, LD_LIBRARY_PATH)
  std::vector<std::string> toolkits;  // roots of CUDA toolkits, newest first
  // site-packages folders of Python installations, where wheels install libraries
  std::vector<std::string> site_packages;
};

// Searches the file system for toolkits and Python installations. Opens no library.
LibrarySearch default_search(const base::Environment& environment);

// A function table, and the library that its pointers refer to. If the report states that the
// library is not usable, all pointers are null.
template <typename Table>
struct Library {
  Table table;
  SharedLibrary library;
  LibraryReport report;
};
using CudaLibrary = Library<CudaTable>;
using NvrtcLibrary = Library<NvrtcTable>;
using NcclLibrary = Library<NcclTable>;

// The find functions never throw if a library is missing or unusable: report.problem has the
// reason. Reading the version of a driver does not initialise it.
CudaLibrary find_cuda(const LibrarySearch& search);
// Finds libannulus_simulator.so and fills its table by annulusSimulatorEntry. A simulator that
// implements another version of annulus/simulator.h is unusable, here and as libcuda.so.1.
CudaLibrary find_simulator(const LibrarySearch& search);
// `driver` is a version as returned by cuDriverGetVersion. Returns the first NVRTC whose major
// version is not higher than the driver's, because a driver need not load code from a later
// version. Without such an NVRTC, or if `driver` is 0, returns the first NVRTC of any version.
NvrtcLibrary find_nvrtc(const LibrarySearch& search, int driver = 0);
NcclLibrary find_nccl(const LibrarySearch& search);
// The NCCL in libannulus_simulator.so, for devices that it simulates.
NcclLibrary find_simulated_nccl(const LibrarySearch& search);

// The open functions throw Error{kLibrary} instead. The message has the problem and every place
// that was tried.
CudaLibrary open_cuda(const LibrarySearch& search);
CudaLibrary open_simulator(const LibrarySearch& search);
NvrtcLibrary open_nvrtc(const LibrarySearch& search, int driver = 0);
NcclLibrary open_nccl(const LibrarySearch& search);

// The reports of all libraries, as find_libraries() returns them.
LibraryReports report_libraries(const LibrarySearch& search);

// Remedies for a missing NVRTC: where to get it, where it is searched for, and how to work without
// it. The second function returns only the last part.
std::string nvrtc_remedies();
std::string compile_ahead_remedy();

// 12080 gives "12.8". For NCCL, 22809 gives "2.28.9".
std::string cuda_version_text(int version);
std::string nccl_version_text(int version);

}  // namespace annulus::abi

#endif  // ANNULUS_ABI_LIBRARIES_H_
