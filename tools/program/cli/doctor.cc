// annulus doctor: lists what is installed on this machine, which of it would be used, and what is
// wrong.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>

#include "annulus/kernels.h"
#include "annulus/tune.h"
#include "base/env.h"
#include "program/cli/environment.h"
#include "program/cli/output.h"
#include "program/cli/verb.h"
#include "program/input/options.h"
#include "program/tune/tuned_text.h"

namespace annulus::program {
namespace {

struct DoctorArguments {
  DeviceArguments device;
  bool json = false;
};

base::Json library_json(const LibraryReport& report) {
  base::Json json;
  json["name"] = report.name;
  json["usable"] = report.usable();
  json["path"] = report.path;
  json["version"] = report.version_text;
  json["simulated"] = report.simulated;
  json["problem"] = report.problem;
  json["absent"] = report.absent;
  json["tried"] = base::Json::array();
  for (const LibraryAttempt& attempt : report.tried) {
    json["tried"].push_back({{"where", attempt.where}, {"outcome", attempt.outcome}});
  }
  return json;
}

std::string library_text(const LibraryReport& report) {
  if (!report.usable()) return report.problem;
  std::string text = fmt::format("{} at {}", report.version_text, report.path);
  if (report.simulated) text += ", simulated";
  for (const std::string& symbol : report.absent) text += fmt::format(", without {}", symbol);
  return text;
}

// The device that --device names, or else the default device, after an attempt to open it.
struct Opened {
  std::string name;
  std::string reason = "--device names it";
  std::string problem;  // why the device does not open; empty if it opens
  std::string architecture;
  bool simulated = false;
  DeviceInfo info;                        // set if the device opens
  ErrorCode code = ErrorCode::kInternal;  // set if there is a problem
};

Opened try_to_open(const DeviceOptions& options) {
  Opened opened;
  try {
    const DeviceChoice chosen = choose_device(options.name);
    opened.name = chosen.name;
    if (options.name.empty()) opened.reason = chosen.reason;
    DeviceOptions named = options;
    named.name = opened.name;
    const Device device = Device::open(named);
    opened.architecture = device.info().architecture;
    opened.simulated = device.info().simulated;
    opened.info = device.info();
  } catch (const Error& error) {
    opened.problem = error.what();
    opened.code = error.code();
  }
  return opened;
}

// All findings. They are collected before any of them is printed.
struct Findings {
  LibraryReports libraries;
  DeviceListing gpus;
  KernelListing kernels;
  std::vector<KernelListing> ahead;  // folders of kernels that were compiled ahead
  TunedListing tuned;
  Opened device;
  // Environment variables, name and value.
  std::vector<std::pair<std::string, std::string>> variables;
};

Findings examine(const DoctorArguments& arguments) {
  const base::Environment environment = base::read_environment();
  const DeviceOptions options = device_options(arguments.device);
  std::vector<std::pair<std::string, std::string>> variables;
  for (const Variable& each : environment_variables()) {
    variables.emplace_back(each.name, environment.*each.value);
  }
  return {.libraries = find_libraries(),
          .gpus = list_devices(),
          .kernels = list_kernels(options.cache_dir),
          .ahead = list_shipped_kernels(options.kernels_path),
          .tuned = annulus::list_tuned(options.tuned_path),
          .device = try_to_open(options),
          .variables = std::move(variables)};
}

// The number of tuned results that serve the device, and the number of other results for each
// reason.
struct Served {
  std::int64_t here = 0;
  std::map<std::string, std::int64_t> others;
};

Served tuned_here(const Findings& found) {
  Served served;
  for (const TunedEntry& entry : found.tuned.entries) {
    const std::string why = why_unused(entry, found.device.info);
    if (why.empty()) {
      ++served.here;
    } else {
      ++served.others[why];
    }
  }
  return served;
}

// For each pack, the number of results that were found on each device.
std::map<std::string, std::map<std::string, std::int64_t>> packs_of(const TunedListing& tuned) {
  std::map<std::string, std::map<std::string, std::int64_t>> packs;
  for (const TunedEntry& entry : tuned.entries) {
    if (entry.packed) ++packs[entry.path][entry.device];
  }
  return packs;
}

Served kernels_here(const Findings& found, const KernelListing& kernels, bool compiled_ahead) {
  Served served;
  for (const KernelSet& set : kernels.sets) {
    const std::string why = why_unused(set, found.device.info, compiled_ahead);
    if (why.empty()) {
      served.here += set.kernels;
    } else {
      served.others[printable(why)] += set.kernels;
    }
  }
  return served;
}

base::Json served_json(const Served& served) {
  base::Json others = base::Json::array();
  for (const auto& [why, count] : served.others) {
    others.push_back({{"count", count}, {"why", why}});
  }
  return {{"here", served.here}, {"others", others}};
}

void print_served(const char* name, const Served& served) {
  for (const auto& [why, count] : served.others) {
    print_line(name, fmt::format("{} not used here: {}", count, why));
  }
}

base::Json gpu_json(const ListedDevice& gpu) {
  return {{"name", gpu.name},
          {"description", gpu.description},
          {"compute_capability", gpu.compute_capability},
          {"multiprocessors", gpu.multiprocessors},
          {"memory_bytes", gpu.memory_bytes},
          {"shared_bytes_per_block", gpu.shared_bytes_per_block},
          {"simulated", gpu.simulated}};
}

base::Json findings_json(const Findings& found) {
  base::Json json;
  json["libraries"] = {{"cuda", library_json(found.libraries.cuda)},
                       {"simulator", library_json(found.libraries.simulator)},
                       {"nvrtc", library_json(found.libraries.nvrtc)},
                       {"nccl", library_json(found.libraries.nccl)}};
  json["gpus"] = base::Json::array();
  for (const ListedDevice& gpu : found.gpus.devices) json["gpus"].push_back(gpu_json(gpu));
  json["gpu_problem"] = found.gpus.problem;
  json["cache"] = {{"folder", found.kernels.folder},
                   {"usable", found.kernels.usable},
                   {"problem", found.kernels.problem},
                   {"kernels", found.kernels.kernels},
                   {"bytes", found.kernels.bytes}};
  json["compiled_ahead"] = base::Json::array();
  for (const KernelListing& each : found.ahead) {
    json["compiled_ahead"].push_back({{"folder", each.folder},
                                      {"usable", each.usable},
                                      {"problem", each.problem},
                                      {"kernels", each.kernels},
                                      {"bytes", each.bytes}});
    if (!found.device.problem.empty()) continue;
    json["compiled_ahead"].back()["of_device"] = served_json(kernels_here(found, each, true));
  }
  json["tuned"] = {{"folders", found.tuned.folders},
                   {"entries", found.tuned.entries.size()},
                   {"packs", base::Json::object()},
                   {"ignored", found.tuned.ignored}};
  for (const auto& [path, devices] : packs_of(found.tuned)) {
    json["tuned"]["packs"][path] = base::Json(devices);
  }
  for (const auto& [variable, value] : found.variables) json["environment"][variable] = value;
  json["device"] = {{"name", found.device.name},
                    {"reason", found.device.reason},
                    {"architecture", found.device.architecture},
                    {"simulated", found.device.simulated},
                    {"problem", found.device.problem}};
  if (found.device.problem.empty()) {
    json["cache"]["of_device"] = served_json(kernels_here(found, found.kernels, false));
    json["tuned"]["of_device"] = served_json(tuned_here(found));
    json["device"]["tuned_key"] = found.device.info.tuned_key;
    json["device"]["kernel_origin"] = found.device.info.kernel_origin;
    json["device"]["compile_problem"] = found.device.info.compile_problem;
  }
  return json;
}

void print_gpus(const DeviceListing& gpus) {
  for (const ListedDevice& gpu : gpus.devices) {
    print_line(
        gpu.name,
        fmt::format("{}{}, compute capability {}.{}, {} multiprocessors, {:.1f} GB, {} "
                    "bytes of shared memory per CTA",
                    gpu.description, gpu.simulated ? " (simulated)" : "",
                    gpu.compute_capability / 10, gpu.compute_capability % 10, gpu.multiprocessors,
                    static_cast<double>(gpu.memory_bytes) / 1e9, gpu.shared_bytes_per_block));
  }
  if (gpus.devices.empty()) print_line("GPUs", "none: " + gpus.problem);
}

void print_folders(const Findings& found) {
  const KernelListing& kernels = found.kernels;
  const bool opens = found.device.problem.empty();
  if (kernels.usable) {
    const Served served = opens ? kernels_here(found, kernels, false) : Served{};
    print_line("cache",
               fmt::format("{}: {} kernels{}, {:.1f} MB, private", kernels.folder, kernels.kernels,
                           opens ? fmt::format(", {} for this device", served.here) : "",
                           static_cast<double>(kernels.bytes) / 1e6));
    print_served("", served);
  } else {
    print_line("cache",
               "nothing is kept on disk: " +
                   (kernels.problem.empty() ? std::string("no folder is set") : kernels.problem));
  }
  for (const KernelListing& each : found.ahead) {
    if (!each.usable) {
      print_line("ahead", "kernels compiled ahead are not used: " + each.problem);
      continue;
    }
    const Served of_folder = opens ? kernels_here(found, each, true) : Served{};
    print_line("ahead",
               fmt::format("{}: {} kernels{}, {:.1f} MB, only read", each.folder, each.kernels,
                           opens ? fmt::format(", {} for this device", of_folder.here) : "",
                           static_cast<double>(each.bytes) / 1e6));
    print_served("", of_folder);
  }
  const Served served = opens ? tuned_here(found) : Served{};
  print_line("tuned", fmt::format("{} results{}{}{}", found.tuned.entries.size(),
                                  opens ? fmt::format(", {} for this device", served.here) : "",
                                  found.tuned.folders.empty() ? "; no folder is set" : " in ",
                                  fmt::join(found.tuned.folders, ", ")));
  print_served("", served);
  for (const auto& [path, devices] : packs_of(found.tuned)) {
    std::string text;
    for (const auto& [device, count] : devices) {
      text += fmt::format("{}{} of {}", text.empty() ? "" : "; ", count, printable(device));
    }
    print_line("pack", fmt::format("{}: {}", path, text));
  }
  for (const std::string& line : found.tuned.ignored) print_line("ignored", printable(line));
}

void print_findings(const Findings& found, const std::string& asked_for) {
  print_line("driver", library_text(found.libraries.cuda));
  print_line("simulator", library_text(found.libraries.simulator));
  const LibraryReport& nvrtc = found.libraries.nvrtc;
  print_line(
      "NVRTC",
      (nvrtc.usable() ? ""
                      : "not found, and needed only to compile kernels that are not on disk: ") +
          library_text(nvrtc));
  const LibraryReport& nccl = found.libraries.nccl;
  print_line("NCCL",
             (nccl.usable() ? "" : "not found, and needed only by communicators of GPUs: ") +
                 library_text(nccl));
  print_gpus(found.gpus);
  print_folders(found);
  for (const auto& [variable, value] : found.variables) {
    if (!value.empty()) print_line("set", fmt::format("{}={}", variable, value));
  }
  const Opened& device = found.device;
  if (device.problem.empty()) {
    print_line("device", fmt::format("{} ({}{}): {}", device.name, device.architecture,
                                     device.simulated ? ", simulated" : "", device.reason));
    if (!device.info.compile_problem.empty() && nvrtc.usable()) {
      print_line("", "compiles nothing: " + device.info.compile_problem);
    }
  } else {
    print_line("device",
               fmt::format("{} does not open: {}", device.name.empty() ? asked_for : device.name,
                           device.problem));
  }
}

Exit doctor(const DoctorArguments& arguments) {
  const Findings found = examine(arguments);
  if (arguments.json) {
    print_json(findings_json(found));
  } else {
    print_findings(found, device_options(arguments.device).name);
  }
  return found.device.problem.empty() ? Exit::kOk : exit_code(found.device.code);
}

void add_options(CLI::App& app, DoctorArguments* arguments) {
  add_device(app, &arguments->device);
  add_json(app, &arguments->json);
}

}  // namespace

const Verb verb_doctor = {"doctor",
                          "what is installed here and what would be used",
                          {"annulus doctor --device sim:sm_90a"},
                          add_verb<DoctorArguments, add_options, doctor>};

}  // namespace annulus::program
