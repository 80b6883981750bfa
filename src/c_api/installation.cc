// The C interface of what is installed. Each function converts the results of annulus/kernels.h.
#include "annulus/c_tools.h"

#include "annulus/kernels.h"
#include "c_api/functions.h"

namespace annulus::c_api {
namespace {

constexpr StructName kInstallationInfo = {"annulus_installation_info",
                                          "ANNULUS_INSTALLATION_INFO_INIT"};
constexpr StructName kLibraryReport = {"annulus_library_report", "ANNULUS_LIBRARY_REPORT_INIT"};
constexpr StructName kListedDevice = {"annulus_listed_device", "ANNULUS_LISTED_DEVICE_INIT"};

// A library whose lists are converted to lines.
struct ToldLibrary {
  explicit ToldLibrary(LibraryReport of) : report(std::move(of)), absent(lines(report.absent)) {
    std::vector<std::string> places;
    for (const LibraryAttempt& attempt : report.tried) {
      places.push_back(attempt.where + ": " + attempt.outcome);
    }
    tried = lines(places);
  }
  LibraryReport report;
  std::string absent;
  std::string tried;
};

struct InstallationObject {
  std::vector<ToldLibrary> libraries;  // in the order of annulus_library
  DeviceListing listing;
  DeviceChoice chosen;
  KernelListing kernels;
  std::string origins;  // lines, like the following members
  std::string folders;
};
HandleTable<InstallationObject>& installations() {
  static auto* table = new HandleTable<InstallationObject>("installation", 0x3b);
  return *table;
}
using InstallationPin = HandleTable<InstallationObject>::Pin;

InstallationObject examine(const std::optional<std::string>& cache_dir) {
  InstallationObject found;
  LibraryReports libraries = find_libraries();
  found.libraries.emplace_back(std::move(libraries.cuda));
  found.libraries.emplace_back(std::move(libraries.simulator));
  found.libraries.emplace_back(std::move(libraries.nvrtc));
  found.libraries.emplace_back(std::move(libraries.nccl));
  found.listing = list_devices();
  try {
    found.chosen = choose_device();
  } catch (const Error& error) {
    found.chosen.reason = error.what();
  }
  found.kernels = list_kernels(cache_dir);
  std::vector<std::string> origins;
  for (const KernelSet& set : found.kernels.sets) {
    origins.push_back(fmt::format("{}: {}", set.kernels, set.origin));
  }
  found.origins = lines(origins);
  std::vector<std::string> folders;
  for (const KernelListing& folder : list_shipped_kernels()) {
    folders.push_back(
        fmt::format("{}: {}", folder.folder,
                    folder.usable ? fmt::format("{} kernels", folder.kernels) : folder.problem));
  }
  found.folders = lines(folders);
  return found;
}

annulus_library_report to_c(const ToldLibrary& library) {
  annulus_library_report c = ANNULUS_LIBRARY_REPORT_INIT;
  c.name = library.report.name.c_str();
  c.path = library.report.path.c_str();
  c.version_text = library.report.version_text.c_str();
  c.problem = library.report.problem.c_str();
  c.absent = library.absent.c_str();
  c.tried = library.tried.c_str();
  c.version = library.report.version;
  c.usable = library.report.usable() ? 1 : 0;
  c.simulated = library.report.simulated ? 1 : 0;
  return c;
}

annulus_listed_device to_c(const ListedDevice& device) {
  annulus_listed_device c = ANNULUS_LISTED_DEVICE_INIT;
  c.name = device.name.c_str();
  c.description = device.description.c_str();
  c.compute_capability = device.compute_capability;
  c.simulated = device.simulated ? 1 : 0;
  c.multiprocessors = device.multiprocessors;
  c.shared_bytes_per_block = device.shared_bytes_per_block;
  c.memory_bytes = device.memory_bytes;
  return c;
}

}  // namespace
}  // namespace annulus::c_api

extern "C" {

annulus_status annulus_installation_examine(const char* cache_dir,
                                            annulus_installation** installation) {
  return guarded([&] {
    check_pointer("installation (where the handle goes)", installation);
    std::optional<std::string> folder;
    if (cache_dir != nullptr) folder = cache_dir;
    give(installation, installations(), std::make_unique<InstallationObject>(examine(folder)));
  });
}

annulus_status annulus_installation_destroy(annulus_installation* installation) {
  return guarded([&] { installations().erase(number(installation)); });
}

annulus_status annulus_installation_get(annulus_installation* installation,
                                        annulus_installation_info* to) {
  return guarded([&] {
    const InstallationPin pin(installations(), number(installation));
    annulus_installation_info c = ANNULUS_INSTALLATION_INFO_INIT;
    c.default_device = pin->chosen.name.c_str();
    c.default_reason = pin->chosen.reason.c_str();
    c.device_problem = pin->listing.problem.c_str();
    c.cache_dir = pin->kernels.folder.c_str();
    c.cache_problem = pin->kernels.problem.c_str();
    c.devices = pin->listing.devices.size();
    c.cached_kernels = pin->kernels.kernels;
    c.cached_bytes = pin->kernels.bytes;
    c.cache_usable = pin->kernels.usable ? 1 : 0;
    c.cached_origins = pin->origins.c_str();
    c.kernel_folders = pin->folders.c_str();
    write_struct(kInstallationInfo, to, c);
  });
}

annulus_status annulus_installation_get_library(annulus_installation* installation, int32_t library,
                                                annulus_library_report* to) {
  return guarded([&] {
    const InstallationPin pin(installations(), number(installation));
    if (library < ANNULUS_LIBRARY_CUDA || library > ANNULUS_LIBRARY_NCCL) {
      base::fail(ErrorCode::kInvalidArgument, "library {} of {}; give an annulus_library", library,
                 pin->libraries.size());
    }
    write_struct(kLibraryReport, to, to_c(pin->libraries[static_cast<std::size_t>(library)]));
  });
}

annulus_status annulus_installation_get_device(annulus_installation* installation, size_t index,
                                               annulus_listed_device* to) {
  return guarded([&] {
    const InstallationPin pin(installations(), number(installation));
    const std::vector<ListedDevice>& devices = pin->listing.devices;
    if (index >= devices.size()) {
      base::fail(ErrorCode::kInvalidArgument, "device {} of {}", index, devices.size());
    }
    write_struct(kListedDevice, to, to_c(devices[index]));
  });
}

}  // extern "C"
