#include "abi/libraries.h"

#include <cstring>

#include "abi/library_search.h"
#include "base/fail.h"

namespace annulus::abi {
namespace {

const LibraryNames kCudaNames = {"the CUDA driver", {"libcuda.so.1"}, {}, {}};

const LibraryNames kNvrtcNames = {"NVRTC",
                                  {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"},
                                  {"lib64", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"},
                                  {"nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"}};

const LibraryNames kNcclNames = {"NCCL",
                                 {"libnccl.so.2"},
                                 {"lib64", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"},
                                 {"nvidia/nccl/lib"}};

// Fills one slot. POSIX promises that a symbol's address may be copied into a function pointer.
template <typename Function>
bool fill(const SharedLibrary& library, const char* symbol, Function** slot) {
  void* address = library.symbol(symbol);
  static_assert(sizeof(address) == sizeof(*slot));
  std::memcpy(slot, &address, sizeof(address));
  return address != nullptr;
}

void note_missing(const char* symbol, LibraryReport* report) {
  if (!report->problem.empty()) return;
  report->problem = fmt::format("{} at {} lacks the required symbol {}; install a newer one",
                                report->name, report->path, symbol);
}

// That a real driver lacks the simulator's functions is no news.
void note_absent(const char* symbol, LibraryReport* report) {
  if (std::strncmp(symbol, "annulus", 7) != 0) report->absent.push_back(symbol);
}

#define REQUIRED_SLOT(member, symbol) \
  if (!fill(found.library, #symbol, &found.table.member)) note_missing(#symbol, &found.report);
#define OPTIONAL_SLOT(member, symbol) \
  if (!fill(found.library, #symbol, &found.table.member)) note_absent(#symbol, &found.report);

void fill_table(CudaLibrary& found) {
#define REQUIRED(member, symbol, parameters) REQUIRED_SLOT(member, symbol)
#define OPTIONAL(member, symbol, parameters) OPTIONAL_SLOT(member, symbol)
#include "abi/cuda.def"
#undef REQUIRED
#undef OPTIONAL
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

// A library that lacks some symbol may still say how old it is: that explains the lack.
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
  if (report.version != 0 ? report.version < minimum : report.usable()) {
    report.problem = fmt::format("{} at {} is version {}; {} or newer is needed", names.name,
                                 report.path, report.version_text, text(minimum));
  }
  if (!report.usable()) found.table = {};
  return found;
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
  found.report.simulated = found.table.simulator_version != nullptr;
  return found;
}

NvrtcLibrary find_nvrtc(const LibrarySearch& search) {
  auto found = find<NvrtcTable>(kNvrtcNames, search, kMinimumNvrtc, cuda_version_text);
  // NVRTC opens its second half by its bare name, which the loader finds beside it only where a
  // toolkit was installed system-wide. Opened here first, that name is known to the loader.
  const std::size_t slash = found.report.path.rfind('/');
  if (slash != std::string::npos) {
    std::string ignored;  // where it is not there, NVRTC says what it misses
    const SharedLibrary builtins(
        fmt::format("{}/libnvrtc-builtins.so.{}", found.report.path.substr(0, slash),
                    found.report.version_text),
        &ignored);
  }
  return found;
}

NcclLibrary find_nccl(const LibrarySearch& search) {
  return find<NcclTable>(kNcclNames, search, kMinimumNccl, nccl_version_text);
}

CudaLibrary open_cuda(const LibrarySearch& search) { return or_throw(find_cuda(search)); }
NvrtcLibrary open_nvrtc(const LibrarySearch& search) { return or_throw(find_nvrtc(search)); }
NcclLibrary open_nccl(const LibrarySearch& search) { return or_throw(find_nccl(search)); }

LibrariesReport report_libraries(const LibrarySearch& search) {
  return {find_cuda(search).report, find_nvrtc(search).report, find_nccl(search).report};
}

std::string cuda_version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

// Up to 2.8 the minor number had one digit: 2804 is 2.8.4.
std::string nccl_version_text(int version) {
  if (version < 10000) {
    return fmt::format("{}.{}.{}", version / 1000, version % 1000 / 100, version % 100);
  }
  return fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
}

}  // namespace annulus::abi
