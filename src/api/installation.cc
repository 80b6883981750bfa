// Reports what is installed without opening a device.
#include "annulus/kernels.h"

#include <algorithm>
#include <map>
#include <utility>

#include "abi/libraries.h"
#include "api/device_name.h"
#include "api/impl.h"
#include "base/env.h"
#include "device/device_info.h"
#include "jit/disk_cache.h"

namespace annulus::inline v0 {
namespace {

ListedDevice listed(const device::DeviceInfo& info) {
  return {.name = api::to_string(api::DeviceName{false, "", info.ordinal}),
          .description = info.name,
          .compute_capability = info.compute_capability(),
          .simulated = info.simulated,
          .multiprocessors = info.multiprocessors,
          .shared_bytes_per_block = info.shared_bytes_per_block_optin,
          .memory_bytes = info.memory_bytes};
}

constexpr char kNoKernel[] = "no kernel of this version of the library";

void count_kernels(const std::vector<jit::ListedKernel>& kernels, KernelListing* listing) {
  std::map<std::string, KernelSet> sets;
  for (const jit::ListedKernel& kernel : kernels) {
    const std::string origin = kernel.origin ? jit::to_string(*kernel.origin) : kNoKernel;
    KernelSet& set = sets.try_emplace(origin, KernelSet{.origin = origin}).first->second;
    ++set.kernels;
    set.bytes += kernel.bytes;
    set.oldest = set.kernels == 1 ? kernel.modified : std::min(set.oldest, kernel.modified);
    set.newest = std::max(set.newest, kernel.modified);
    ++listing->kernels;
    listing->bytes += kernel.bytes;
  }
  for (auto& [origin, set] : sets) listing->sets.push_back(std::move(set));
}

}  // namespace

LibraryReports find_libraries() {
  return abi::report_libraries(abi::default_search(base::read_environment()));
}

DeviceListing list_devices() {
  DeviceListing listing;
  abi::CudaLibrary library = abi::find_cuda(abi::default_search(base::read_environment()));
  if (!library.report.usable()) {
    listing.problem = "no usable CUDA driver";
    return listing;
  }
  try {
    const device::Driver driver(std::move(library));
    for (const device::DeviceInfo& info : device::list_devices(driver)) {
      listing.devices.push_back(listed(info));
    }
    if (listing.devices.empty()) listing.problem = "the CUDA driver has no device";
  } catch (const Error& error) {
    listing.problem = error.what();
  }
  return listing;
}

DeviceChoice choose_device(std::string_view name) {
  if (!name.empty()) {
    return {api::to_string(api::parse_device_name(name)), "the caller named it"};
  }
  const api::DefaultDevice chosen = api::default_device(base::read_environment());
  return {api::to_string(chosen.name), chosen.reason};
}

KernelListing list_kernels(const std::optional<std::string>& cache_dir) {
  jit::DiskCacheOptions options;
  options.folder = cache_dir.value_or(base::default_cache_dir(base::read_environment()));
  jit::DiskCache cache(options);
  KernelListing listing{
      .folder = options.folder, .problem = cache.problem(), .usable = cache.usable(), .sets = {}};
  count_kernels(cache.list(), &listing);
  return listing;
}

std::vector<KernelListing> list_shipped_kernels(const std::optional<std::string>& kernels_path) {
  jit::KernelFolders folders(api::kernel_folders(kernels_path, base::read_environment()));
  std::vector<KernelListing> listings;
  for (const jit::KernelFolders::Described& each : folders.describe()) {
    if (!each.there) continue;
    KernelListing& listing = listings.emplace_back(KernelListing{.folder = each.folder,
                                                                 .problem = each.problem,
                                                                 .usable = each.problem.empty(),
                                                                 .sets = {}});
    count_kernels(each.kernels, &listing);
  }
  return listings;
}

}  // namespace annulus::inline v0
