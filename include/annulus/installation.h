#ifndef ANNULUS_INSTALLATION_H_
#define ANNULUS_INSTALLATION_H_

// What is installed on this machine, and which device Device::open() would take: for a list that
// people choose from, for a report of what is wrong, before a device is opened or where none opens.
//
//   for (const ListedDevice& gpu : list_devices().devices) offer(gpu.name, gpu.description);
//   const LibraryReports libraries = find_libraries();
//   if (!libraries.nvrtc.usable()) explain(libraries.nvrtc.problem);
//
// `annulus doctor` prints all of it. Nothing here compiles, launches or makes a context. What is
// missing or unfit is an answer, not an error. All functions may be called from any thread; each
// looks anew at the environment, the file system and the driver.

#include "annulus/language.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "annulus/version.h"

namespace annulus::inline v0 {

// A place where a library was looked for.
struct LibraryAttempt {
  std::string where;  // a folder, or "the loader's own search"
  // "opened /usr/lib/...", "has none of libnvrtc.so.13, ...", or the loader's text
  std::string outcome;
};

struct LibraryReport {
  std::string name;                 // "the CUDA driver", "NVRTC", "NCCL", "the simulator"
  std::string path;                 // of the file that was opened; empty: none
  int version = 0;                  // as the library says; 0: not asked
  std::string version_text;         // "13.0", "2.28.9"
  bool simulated = false;           // it is the simulator's
  std::string problem;              // empty: usable. Else what is wrong and what to do about it
  std::vector<std::string> absent;  // optional symbols that it lacks
  std::vector<LibraryAttempt> tried;

  bool usable() const { return problem.empty(); }
};

struct LibraryReports {
  LibraryReport cuda;       // for devices named cuda:N
  LibraryReport simulator;  // for devices named sim:...
  LibraryReport nvrtc;      // for both
  LibraryReport nccl;       // for rings of several GPUs
};

// What the library would use of them, and why not where it would not. Opens them; of the driver
// asks the version, which does not initialise it.
ANNULUS_EXPORT LibraryReports find_libraries();

// A device as its driver describes it.
struct ListedDevice {
  std::string name;            // as DeviceOptions::name takes it: "cuda:0"
  std::string description;     // what the driver calls it
  int compute_capability = 0;  // 80, 90, ...
  bool simulated = false;      // of a simulator that stands in for libcuda.so.1
  int multiprocessors = 0;
  std::int64_t shared_bytes_per_block = 0;  // the most a kernel can have
  std::int64_t memory_bytes = 0;
};

struct DeviceListing {
  std::vector<ListedDevice> devices;  // in the driver's order
  std::string problem;                // why there are none
};

// The devices of the CUDA driver, which it initialises. Those of the simulator, which are named by
// architecture (DeviceOptions::name), are not listed.
ANNULUS_EXPORT DeviceListing list_devices();

struct DeviceChoice {
  std::string name;    // in full: "cuda:0" where "cuda:00" was asked for
  std::string reason;  // why this one
};

// The device that Device::open() takes where DeviceOptions::name is `name`; it may still not open.
// Throws Error{kInvalidArgument} where the name, or with an empty one ANNULUS_DEVICE, is none.
ANNULUS_EXPORT DeviceChoice choose_device(std::string_view name = {});

// Kernels on disk with one origin: architecture, image, NVRTC and sources.
struct KernelSet {
  std::string origin;  // as DeviceInfo::kernel_origin; annulus/kernels.h has whom it serves
  std::int64_t kernels = 0;
  std::int64_t bytes = 0;
  std::int64_t oldest = 0;  // when the first and the last of them were stored, seconds since 1970
  std::int64_t newest = 0;
};

// Compiled kernels in a folder.
struct KernelListing {
  std::string folder;   // empty: nothing is kept
  std::string problem;  // why kernels are not kept there; empty where they are
  bool usable = false;
  std::int64_t kernels = 0;
  std::int64_t bytes = 0;
  std::vector<KernelSet> sets;  // by origin
};

// What is in a folder of compiled kernels; not given: as DeviceOptions::cache_dir. Makes the folder
// where it is missing, as Device::open() does.
ANNULUS_EXPORT KernelListing list_kernels(const std::optional<std::string>& cache_dir = {});

// What is in the folders of kernels compiled ahead, as far as they exist; not given: as
// DeviceOptions::kernels_path.
ANNULUS_EXPORT std::vector<KernelListing> list_shipped_kernels(
    const std::optional<std::string>& kernels_path = {});

}  // namespace annulus::inline v0

#endif  // ANNULUS_INSTALLATION_H_
