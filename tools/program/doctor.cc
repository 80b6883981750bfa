// annulus doctor: what is installed on this machine, what would be used, and what is wrong.
#include <fmt/format.h>

#include <cstdio>

#include "abi/libraries.h"
#include "annulus/tune.h"
#include "api/impl.h"
#include "base/env.h"
#include "base/fail.h"
#include "jit/disk_cache.h"
#include "program/options.h"
#include "program/report.h"

namespace annulus::program {
namespace {

base::Json library_json(const abi::LibraryReport& report) {
  base::Json json;
  json["name"] = report.name;
  json["usable"] = report.usable();
  json["path"] = report.path;
  json["version"] = report.version_text;
  json["simulated"] = report.simulated;
  json["problem"] = report.problem;
  json["absent"] = report.absent;
  json["tried"] = base::Json::array();
  for (const abi::LibraryAttempt& attempt : report.tried) {
    json["tried"].push_back({{"where", attempt.where}, {"outcome", attempt.outcome}});
  }
  return json;
}

std::string library_text(const abi::LibraryReport& report) {
  if (!report.usable()) return report.problem;
  std::string text = fmt::format("{} at {}", report.version_text, report.path);
  if (report.simulated) text += ", simulated";
  for (const std::string& symbol : report.absent) text += fmt::format(", without {}", symbol);
  return text;
}

// The devices of the CUDA driver, or why there are none.
struct Gpus {
  std::vector<device::DeviceInfo> devices;
  std::string problem;
};

Gpus find_gpus(const abi::LibrarySearch& search) {
  Gpus gpus;
  abi::CudaLibrary library = abi::find_cuda(search);
  if (!library.report.usable()) {
    gpus.problem = "no usable CUDA driver";
    return gpus;
  }
  try {
    gpus.devices = device::list_devices(device::Driver(std::move(library)));
    if (gpus.devices.empty()) gpus.problem = "the CUDA driver has no device";
  } catch (const Error& error) {
    gpus.problem = error.what();
  }
  return gpus;
}

}  // namespace

Exit doctor(const DoctorArguments& arguments) {
  const base::Environment environment = base::read_environment();
  const abi::LibrarySearch search = abi::default_search(environment);
  const abi::LibrariesReport libraries = abi::report_libraries(search);
  const Gpus gpus = find_gpus(search);

  const DeviceOptions options = device_options(arguments.device);
  jit::DiskCacheOptions cache_options;
  cache_options.folder = options.cache_dir.value_or(base::default_cache_dir(environment));
  jit::DiskCache cache(cache_options);
  const jit::DiskCache::Contents contents = cache.contents();

  const TunedListing tuned = annulus::list_tuned(options.tuned_path);

  // What would be used, tried in earnest.
  std::string name;
  std::string reason = "--device says so";
  std::string problem;
  std::string architecture;
  bool simulated = false;
  ErrorCode code = ErrorCode::kInternal;
  try {
    if (options.name.empty()) {
      const api::DefaultDevice chosen = api::default_device(environment);
      name = api::to_string(chosen.name);
      reason = chosen.reason;
    } else {
      name = api::to_string(api::parse_device_name(options.name));
    }
    DeviceOptions opened = options;
    opened.name = name;
    const Device device = Device::open(opened);
    architecture = device.info().architecture;
    simulated = device.info().simulated;
  } catch (const Error& error) {
    problem = error.what();
    code = error.code();
  }

  const std::vector<std::pair<std::string, std::string>> variables = {
      {"ANNULUS_CACHE_DIR", environment.cache_dir},
      {"ANNULUS_TUNED", environment.tuned},
      {"ANNULUS_DEVICE", environment.device},
      {"ANNULUS_LOG", environment.log},
      {"ANNULUS_LIBRARY_PATH", environment.library_path}};

  if (arguments.json) {
    base::Json json;
    json["libraries"] = {{"cuda", library_json(libraries.cuda)},
                         {"nvrtc", library_json(libraries.nvrtc)},
                         {"nccl", library_json(libraries.nccl)}};
    json["gpus"] = base::Json::array();
    for (const device::DeviceInfo& gpu : gpus.devices) {
      json["gpus"].push_back({{"name", fmt::format("cuda:{}", gpu.ordinal)},
                              {"description", gpu.name},
                              {"compute_capability", gpu.compute_capability()},
                              {"multiprocessors", gpu.multiprocessors},
                              {"memory_bytes", gpu.memory_bytes},
                              {"shared_bytes_per_block", gpu.shared_bytes_per_block_optin},
                              {"simulated", gpu.simulated}});
    }
    json["gpu_problem"] = gpus.problem;
    json["cache"] = {{"folder", cache_options.folder},
                     {"usable", cache.usable()},
                     {"problem", cache.problem()},
                     {"kernels", contents.kernels},
                     {"bytes", contents.bytes}};
    json["tuned"] = {
        {"folders", tuned.folders}, {"entries", tuned.entries.size()}, {"ignored", tuned.ignored}};
    for (const auto& [variable, value] : variables) json["environment"][variable] = value;
    json["device"] = {{"name", name},
                      {"reason", reason},
                      {"architecture", architecture},
                      {"simulated", simulated},
                      {"problem", problem}};
    print_json(json);
  } else {
    print_line("driver", library_text(libraries.cuda));
    print_line("NVRTC", library_text(libraries.nvrtc));
    print_line("NCCL", library_text(libraries.nccl) +
                           (libraries.nccl.usable() ? "" : " (only rings of GPUs need it)"));
    for (const device::DeviceInfo& gpu : gpus.devices) {
      print_line(fmt::format("cuda:{}", gpu.ordinal),
                 fmt::format("{}{}, compute capability {}.{}, {} multiprocessors, {:.1f} GB, {} "
                             "bytes of shared memory per CTA",
                             gpu.name, gpu.simulated ? " (simulated)" : "", gpu.major, gpu.minor,
                             gpu.multiprocessors, static_cast<double>(gpu.memory_bytes) / 1e9,
                             gpu.shared_bytes_per_block_optin));
    }
    if (gpus.devices.empty()) print_line("GPUs", "none: " + gpus.problem);
    print_line("cache",
               cache.usable()
                   ? fmt::format("{}: {} kernels, {:.1f} MB, private", cache_options.folder,
                                 contents.kernels, static_cast<double>(contents.bytes) / 1e6)
                   : fmt::format("nothing is kept on disk: {}",
                                 cache.problem().empty() ? "no folder is set" : cache.problem()));
    print_line("tuned",
               fmt::format("{} results for this and other devices{}{}", tuned.entries.size(),
                           tuned.folders.empty() ? "; no folder is set" : " in ",
                           fmt::join(tuned.folders, ", ")));
    for (const std::string& line : tuned.ignored) print_line("ignored", line);
    for (const auto& [variable, value] : variables) {
      if (!value.empty()) print_line("set", fmt::format("{}={}", variable, value));
    }
    if (problem.empty()) {
      print_line("device", fmt::format("{} ({}{}): {}", name, architecture,
                                       simulated ? ", simulated" : "", reason));
    } else {
      print_line("device",
                 fmt::format("{} does not open: {}", name.empty() ? options.name : name, problem));
    }
  }
  return problem.empty() ? Exit::kOk : exit_code(code);
}

}  // namespace annulus::program
