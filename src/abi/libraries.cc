#include "abi/libraries.h"

#include <cstdlib>
#include <cstring>
#include <utility>

#include "abi/library_search.h"
#include "annulus/version.h"
#include "base/fail.h"

namespace annulus::abi {
namespace {

const LibraryNames kCudaNames = {"the CUDA driver", {"libcuda.so.1"}, {}, {}};

const LibraryNames kNvrtcNames = {"NVRTC",
                                  {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"},
                                  {"lib64", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"},
                                  {"nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"},
                                  nvrtc_remedies()};

const LibraryNames kNcclNames = {"NCCL",
                                 {"libnccl.so.2"},
                                 {"lib64", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"},
                                 {"nvidia/nccl/lib"}};

// The name differs from libcuda's, because other libraries look for libcuda by name in the
// process.
const LibraryNames kSimulatorNames = {
    "the simulator",
    {fmt::format("libannulus_simulator.so.{}", ANNULUS_VERSION_MAJOR)},
    {},
    {},
    "it is a part of Annulus that can be left out: build it with ANNULUS_SIMULATOR=ON and install "
    "its file next to libannulus.so, or name its folder in ANNULUS_LIBRARY_PATH",
    true};

// Fills one slot. POSIX guarantees that a symbol's address may be copied into a function pointer.
template <typename Function>
bool put(void* address, Function** slot) {
  static_assert(sizeof(address) == sizeof(*slot));
  std::memcpy(slot, &address, sizeof(address));
  return address != nullptr;
}

template <typename Function>
bool fill(const SharedLibrary& library, const char* symbol, Function** slot) {
  return put(library.symbol(symbol), slot);
}

void note_missing(const char* symbol, LibraryReport* report) {
  if (!report->problem.empty()) return;
  report->problem = fmt::format("{} at {} lacks the required symbol {}; install a newer one",
                                report->name, report->path, symbol);
}

#define REQUIRED_SLOT(member, symbol) \
  if (!fill(found.library, #symbol, &found.table.member)) note_missing(#symbol, &found.report);
#define OPTIONAL_SLOT(member, symbol) \
  if (!fill(found.library, #symbol, &found.table.member)) found.report.absent.push_back(#symbol);

void fill_table(CudaLibrary& found) {
#define REQUIRED(member, symbol, parameters) REQUIRED_SLOT(member, symbol)
#define OPTIONAL(member, symbol, parameters) OPTIONAL_SLOT(member, symbol)
// A real driver lacks the simulator's functions. They are not reported as missing.
#define SIMULATOR(member, symbol, parameters) fill(found.library, #symbol, &found.table.member);
#include "abi/cuda.def"
}

#define REQUIRED(result, member, symbol, parameters) REQUIRED_SLOT(member, symbol)
#define OPTIONAL(result, member, symbol, parameters) OPTIONAL_SLOT(member, symbol)
void fill_table(NvrtcLibrary& found) {
#include "abi/nvrtc.def"
}
void fill_table(NcclLibrary& found) {
#include "abi/nccl.def"
}
#undef REQUIRED
#undef OPTIONAL

// Both sides must have the same version of annulus/simulator.h. A driver that is not a simulator
// passes.
void check_simulator_version(CudaLibrary& found) {
  LibraryReport& report = found.report;
  int version = 0;
  if (found.table.simulator_version == nullptr) return;
  found.table.simulator_version(&version);
  report.simulated = true;
  if (version == ANNULUS_SIMULATOR_VERSION) return;
  report.problem = fmt::format(
      "{} at {} is a simulator of version {}, and this library (Annulus {}) works with version {}; "
      "install the simulator of Annulus {}, or remove that file",
      report.name, report.path, version, ANNULUS_VERSION_TEXT, ANNULUS_SIMULATOR_VERSION,
      ANNULUS_VERSION_TEXT);
}

// The simulator's library exports only its own functions. The others are found by name.
auto entries_by(int (*look_up)(const char* name, void** entry)) {
  return [look_up](const char* name) {
    void* address = nullptr;
    return look_up(name, &address) == kCudaSuccess ? address : nullptr;
  };
}

void fill_from_simulator(CudaLibrary& found) {
  LibraryReport& report = found.report;
  const auto entry = entries_by(found.table.simulator_entry);
#define REQUIRED(member, symbol, parameters) \
  if (!put(entry(#symbol), &found.table.member)) note_missing(#symbol, &report);
#define OPTIONAL(member, symbol, parameters) \
  if (!put(entry(#symbol), &found.table.member)) report.absent.push_back(#symbol);
#include "abi/cuda.def"
}

void fill_from_simulator(NcclLibrary& found, int (*look_up)(const char* name, void** entry)) {
  LibraryReport& report = found.report;
  const auto entry = entries_by(look_up);
#define REQUIRED(result, member, symbol, parameters) \
  if (!put(entry(#symbol), &found.table.member)) note_missing(#symbol, &report);
#define OPTIONAL(result, member, symbol, parameters) \
  if (!put(entry(#symbol), &found.table.member)) report.absent.push_back(#symbol);
#include "abi/nccl.def"
#undef REQUIRED
#undef OPTIONAL
}

// A library that lacks a symbol may still report its version, which explains why it lacks the
// symbol.
int ask_version(const CudaTable& table) {
  int version = 0;
  if (table.driver_get_version != nullptr) table.driver_get_version(&version);
  return version;
}

int ask_version(const NvrtcTable& table) {
  int major = 0;
  int minor = 0;
  if (table.version != nullptr) table.version(&major, &minor);
  return 1000 * major + 10 * minor;
}

int ask_version(const NcclTable& table) {
  int version = 0;
  if (table.get_version != nullptr) table.get_version(&version);
  return version;
}

template <typename Table>
Library<Table> find(const LibraryNames& names, const LibrarySearch& search, int minimum,
                    std::string (*text)(int)) {
  Library<Table> found;
  found.library = find_library(names, search, &found.report);
  if (!found.library) return found;
  LibraryReport& report = found.report;
  report.path = found.library.path();
  fill_table(found);
  report.version = ask_version(found.table);
  report.version_text = text(report.version);
  if (report.version == 0 && report.usable()) {
    report.problem = fmt::format(
        "{} at {} states no version; it may be a stub for linking, as the toolkit has in "
        "lib64/stubs: take that folder out of LD_LIBRARY_PATH and ANNULUS_LIBRARY_PATH",
        names.name, report.path);
  } else if (report.version != 0 && report.version < minimum) {
    report.problem = fmt::format("{} at {} is version {}; {} or newer is needed", names.name,
                                 report.path, report.version_text, text(minimum));
  }
  if (!report.usable()) found.table = {};
  return found;
}

// The simulator's own library, with an empty table.
template <typename Table>
Library<Table> find_in_simulator(const LibrarySearch& search) {
  Library<Table> found;
  found.library = find_library(kSimulatorNames, search, &found.report);
  if (found.library) found.report.path = found.library.path();
  return found;
}

// The names without the major versions that are higher than the driver's, such as "libnvrtc.so.13"
// for a driver of 12.x.
LibraryNames fitting_names(LibraryNames names, int driver) {
  if (driver == 0) return names;
  std::erase_if(names.files, [&](const std::string& file) {
    return std::atoi(file.c_str() + file.find(".so.") + 4) > driver / 1000;
  });
  return names.files.empty() ? kNvrtcNames : names;
}

template <typename Table>
Library<Table> or_throw(Library<Table> found) {
  if (found.report.usable()) return found;
  std::string message = found.report.problem + "; tried:";
  for (const LibraryAttempt& attempt : found.report.tried) {
    message += fmt::format("\n  {}: {}", attempt.where, attempt.outcome);
  }
  throw Error(ErrorCode::kLibrary, message);
}

}  // namespace

CudaLibrary find_cuda(const LibrarySearch& search) {
  auto found = find<CudaTable>(kCudaNames, search, kMinimumCuda, cuda_version_text);
  check_simulator_version(found);
  if (!found.report.usable()) found.table = {};
  return found;
}

CudaLibrary find_simulator(const LibrarySearch& search) {
  auto found = find_in_simulator<CudaTable>(search);
  if (!found.library) return found;
  LibraryReport& report = found.report;
  CudaTable& table = found.table;
  if (!fill(found.library, "annulusSimulatorVersion", &table.simulator_version)) {
    note_missing("annulusSimulatorVersion", &report);
  }
  check_simulator_version(found);
  if (!fill(found.library, "annulusSimulatorEntry", &table.simulator_entry)) {
    note_missing("annulusSimulatorEntry", &report);
  }
  if (report.usable()) fill_from_simulator(found);
  if (!report.usable()) {
    table = {};
    return found;
  }
  report.version = ask_version(table);
  report.version_text = cuda_version_text(report.version);
  return found;
}

NvrtcLibrary find_nvrtc(const LibrarySearch& search, int driver) {
  const LibraryNames fitting = fitting_names(kNvrtcNames, driver);
  auto found = find<NvrtcTable>(fitting, search, kMinimumNvrtc, cuda_version_text);
  if (!found.library && fitting.files.size() < kNvrtcNames.files.size()) {
    found = find<NvrtcTable>(kNvrtcNames, search, kMinimumNvrtc, cuda_version_text);
  }
  // NVRTC opens its second library (libnvrtc-builtins) by its bare name, which the loader finds
  // only if a toolkit is installed system-wide. If the library is opened here first, the loader
  // knows its name.
  const std::size_t slash = found.report.path.rfind('/');
  if (slash != std::string::npos) {
    std::string ignored;  // if it is missing, NVRTC reports that itself
    const SharedLibrary builtins(
        fmt::format("{}/libnvrtc-builtins.so.{}", found.report.path.substr(0, slash),
                    found.report.version_text),
        &ignored);
  }
  return found;
}

NcclLibrary find_nccl(const LibrarySearch& search) {
  auto found = find<NcclTable>(kNcclNames, search, kMinimumNccl, nccl_version_text);
  found.report.simulated =
      found.library && found.library.symbol("annulusSimulatorNcclVersion") != nullptr;
  return found;
}

NcclLibrary find_simulated_nccl(const LibrarySearch& search) {
  auto found = find_in_simulator<NcclTable>(search);
  if (!found.library) return found;
  LibraryReport& report = found.report;
  report.simulated = true;
  int (*look_up)(const char* name, void** entry) = nullptr;
  if (fill(found.library, "annulusSimulatorNcclEntry", &look_up)) {
    fill_from_simulator(found, look_up);
  } else {
    note_missing("annulusSimulatorNcclEntry", &report);
  }
  if (!report.usable()) {
    found.table = {};
    return found;
  }
  report.version = ask_version(found.table);
  report.version_text = nccl_version_text(report.version);
  return found;
}

CudaLibrary open_cuda(const LibrarySearch& search) { return or_throw(find_cuda(search)); }
CudaLibrary open_simulator(const LibrarySearch& search) { return or_throw(find_simulator(search)); }
NvrtcLibrary open_nvrtc(const LibrarySearch& search, int driver) {
  return or_throw(find_nvrtc(search, driver));
}
NcclLibrary open_nccl(const LibrarySearch& search) { return or_throw(find_nccl(search)); }

LibraryReports report_libraries(const LibrarySearch& search) {
  LibraryReport cuda = find_cuda(search).report;
  const int driver = cuda.simulated ? 0 : cuda.version;
  return {std::move(cuda), find_simulator(search).report, find_nvrtc(search, driver).report,
          find_nccl(search).report};
}

std::string compile_ahead_remedy() {
  return "compile kernels ahead on a machine with NVRTC, with `annulus warm --shapes FILE --into "
         "DIR`, "
         "or by running the program there once with ANNULUS_CACHE_DIR=DIR, and name DIR here in "
         "ANNULUS_KERNELS";
}

std::string nvrtc_remedies() {
  return "install NVRTC with `pip install nvidia-cuda-nvrtc` (nvidia-cuda-nvrtc-cu12 for a driver "
         "of "
         "CUDA 12), which is found in nvidia/cu13/lib and nvidia/cuda_nvrtc/lib of the "
         "site-packages below ~/.local/lib, /usr/local/lib, /usr/lib and /opt/conda/lib; or with "
         "tools/get_nvrtc of Annulus's source tree; or name its folder, such as one in a virtual "
         "environment, in ANNULUS_LIBRARY_PATH; or do without it: " +
         compile_ahead_remedy();
}

std::string cuda_version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

// Up to version 2.8, the minor number of NCCL had one digit: 2804 is 2.8.4.
std::string nccl_version_text(int version) {
  if (version < 10000) {
    return fmt::format("{}.{}.{}", version / 1000, version % 1000 / 100, version % 100);
  }
  return fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
}

}  // namespace annulus::abi
