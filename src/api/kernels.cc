// Compiles kernels ahead, and lists, checks and cleans folders of compiled kernels.
#include "annulus/kernels.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "abi/libraries.h"
#include "api/impl.h"
#include "api/known_gpus.h"
#include "api/tuned_places.h"
#include "api/warm_until.h"
#include "attention/plan/general.h"
#include "base/fail.h"
#include "base/private_folder.h"
#include "base/work.h"
#include "batch/batch_plan.h"
#include "jit/compile_ahead.h"
#include "jit/folder_care.h"
#include "shape_log/shape_line.h"
#include "tuned/device_key.h"

namespace annulus {
namespace api {
namespace {

// A target for which kernels are compiled.
struct Target {
  std::string name;
  std::shared_ptr<const jit::Compiler> compiler;
  planner::Planner planner;  // has no parts of a device
};

// The parts that all targets of a call share.
struct Workshop {
  const WarmOptions& options;
  base::Environment environment;
  base::Log log;
  std::shared_ptr<const abi::NvrtcLibrary> nvrtc;
  std::shared_ptr<const jit::TemplateSet> templates;
  std::map<jit::ImageKind, std::shared_ptr<const jit::Compiler>> compilers;
  std::map<bool, device::DriverPointer> drivers;  // the key is whether it is the simulator

  const std::shared_ptr<const jit::Compiler>& compiler(jit::ImageKind kind) {
    auto& made = compilers[kind];
    if (!made) made = std::make_shared<const jit::Compiler>(nvrtc, templates, kind);
    return made;
  }
};

// Plans for a device without touching one.
planner::Planner planner_for(const std::string& name, const device::DeviceInfo& info,
                             jit::Arch arch, int driver_version, const TunedPlaces& places,
                             const jit::TemplateSet& templates, const base::Log& log) {
  planner::Planner planner;
  planner.device = name;
  planner.limits = limits_of(info, arch);
  planner.tuned = std::make_shared<tuned::TunedStore>(
      store_options(places, info, planner.limits, driver_version, templates), log);
  planner.tiles = std::make_shared<attention::TileCache>(base::CacheLimits{});
  planner.log = log;
  return planner;
}

Target target_of(Workshop& shop, const std::string& name, const device::DeviceInfo& info,
                 jit::Arch arch, int driver_version) {
  return {name, shop.compiler(info.simulated ? jit::ImageKind::kPtx : jit::ImageKind::kCubin),
          planner_for(name, info, arch, driver_version,
                      tuned_places(shop.options.tuned_path, shop.environment), *shop.templates,
                      shop.log)};
}

// A device of this machine, real or simulated, with its own limits. No context is made.
Target target_here(Workshop& shop, const DeviceName& name) {
  device::DriverPointer& driver = shop.drivers[name.simulated];
  if (!driver) driver = open_driver(name, shop.environment);
  const device::DeviceInfo info = device::read_device_info(*driver, ordinal_of(name, *driver));
  return target_of(
      shop, to_string(name), info,
      jit::arch_for_device(info.major, info.minor, info.tensor_maps, shop.nvrtc->report.version),
      driver->version());
}

std::vector<Target> targets_of(Workshop& shop, const std::string& word) {
  std::vector<Target> targets;
  if (word.starts_with("cuda") || word.starts_with("sim:")) {
    targets.push_back(target_here(shop, parse_device_name(word)));
    return targets;
  }
  for (const auto& [model, arch] : known_targets(word)) {
    targets.push_back(target_of(shop, model->name, info_of(*model), arch, 0));
  }
  return targets;
}

// The kernels of all work for all targets, each once, and the work that cannot be planned.
class Jobs {
 public:
  explicit Jobs(const std::function<bool()>& cancelled) : cancelled_(cancelled) {}

  void add(const Target& target, const WarmWork& work) {
    if (work.general) {
      add(
          target, [&] { return attention::general_specs(target.planner.limits.arch); },
          [] { return std::string("general kernels"); });
    }
    for (const WarmShape& shape : work.shapes) {
      const Selection* selection = shape.selection ? &*shape.selection : nullptr;
      add(
          target,
          [&] {
            return target.planner.kernels_of({shape.problem, shape.options, selection});
          },
          [&] { return shape_log::shape_line(shape.problem, shape.options); });
    }
    for (const WarmBatch& batch : work.batches) {
      add(
          target,
          [&] {
            const base::Work limit(WorkLimit{}, "planning a batch");
            validate(batch.problem);
            return batch::kernels_of(
                batch::make_plan(batch.problem, batch.options, target.planner.limits));
          },
          [&] { return shape_log::shape_line(batch.problem, batch.options); });
    }
  }

  // Adds the kernels of a folder that are for the architecture of the target. `wanted` has the
  // texts that state the purpose of the kernels (jit::wanted_in).
  void add(const Target& target, const std::vector<std::string>& wanted) {
    for (const std::string& text : wanted) {
      std::optional<jit::KernelRequest> request = target.compiler->adopt(text);
      if (!request || request->spec.arch != target.planner.limits.arch) continue;
      add(target, {target.compiler, std::move(*request)});
    }
  }

  bool cancelled() const { return cancelled_(); }
  const std::vector<jit::AheadJob>& jobs() const { return jobs_; }
  const std::string& target(std::size_t job) const { return targets_[job]; }
  std::vector<WarmFailure> failures;

 private:
  template <typename Plan, typename Describe>
  void add(const Target& target, const Plan& plan, const Describe& describe) {
    if (cancelled()) return;
    try {
      for (jit::KernelSpec& spec : plan()) {
        add(target, {target.compiler, target.compiler->prepare(std::move(spec))});
      }
    } catch (const Error& error) {
      failures.push_back({target.name, describe(), error.code(), error.what()});
    }
  }

  void add(const Target& target, jit::AheadJob job) {
    if (!seen_.insert(job.request.key.digest).second) return;
    jobs_.push_back(std::move(job));
    targets_.push_back(target.name);
  }

  const std::function<bool()>& cancelled_;
  std::set<base::Digest> seen_;
  std::vector<jit::AheadJob> jobs_;
  std::vector<std::string> targets_;  // the target of each job
};

// The parts of KernelSet::origin. All are empty if the text is not an origin.
std::array<std::string, 5> parts_of_origin(std::string_view origin) {
  std::array<std::string, 5> parts;
  for (std::string& part : parts) {
    const std::size_t end = origin.find(", ");
    part = origin.substr(0, end);
    origin.remove_prefix(end == origin.npos ? origin.size() : end + 2);
  }
  if (parts.back().empty() || !origin.empty()) parts = {};
  return parts;
}

// A folder of compiled kernels that exists and can be trusted. It is held open.
class TrustedFolder {
 public:
  explicit TrustedFolder(const std::optional<std::string>& path)
      : path_(path.value_or(base::default_cache_dir(base::read_environment()))) {
    if (path_.empty()) {
      base::fail(ErrorCode::kFile,
                 "no folder of compiled kernels is set; name one, or set "
                 "ANNULUS_CACHE_DIR");
    }
    std::string problem;
    folder_ = base::open_private_folder(files_, path_, base::FolderUse::kOwnOrRoots,
                                        "name a folder that root or you own", &problem);
    if (folder_ >= 0) return;
    base::fail(ErrorCode::kFile, "{}",
               problem.empty() ? fmt::format("there is no folder '{}'", path_) : problem);
  }
  ~TrustedFolder() { files_.close(folder_); }
  TrustedFolder(const TrustedFolder&) = delete;
  TrustedFolder& operator=(const TrustedFolder&) = delete;

  const std::string& path() const { return path_; }
  jit::OpenFolder open() const { return {files_, folder_, path_, base::FolderUse::kOwnOrRoots}; }

 private:
  std::string path_;
  mutable base::FileSystem files_;
  int folder_ = -1;
};

// The origins of kernels that devices of this machine can run, real or simulated.
std::vector<jit::KernelOrigin> origins_here() {
  const base::Environment environment = base::read_environment();
  const auto templates = jit::TemplateSet::embedded();
  std::vector<jit::KernelOrigin> origins;
  for (const bool simulated : {false, true}) {
    const abi::LibrarySearch search = abi::default_search(environment);
    abi::CudaLibrary library = simulated ? abi::find_simulator(search) : abi::find_cuda(search);
    if (!library.report.usable()) continue;
    std::vector<device::DeviceInfo> devices;
    int version = 0;
    try {
      const device::Driver driver(std::move(library));
      devices = device::list_devices(driver);
      version = driver.version();
    } catch (const Error&) {
      continue;  // a driver without a GPU
    }
    auto nvrtc =
        std::make_shared<const abi::NvrtcLibrary>(abi::find_nvrtc(search, simulated ? 0 : version));
    const bool compiles = nvrtc->report.usable();
    for (const device::DeviceInfo& info : devices) {
      const jit::Compiler compiler(nvrtc, templates,
                                   info.simulated ? jit::ImageKind::kPtx : jit::ImageKind::kCubin);
      origins.push_back(
          compiler.origin(jit::arch_for_device(info.major, info.minor, info.tensor_maps,
                                               compiles ? compiler.version() : jit::kAnyNvrtc)));
      // Without NVRTC, a device uses the available kernels of the two architectures
      // (choose_architecture in open.cc).
      if (!compiles) {
        origins.push_back(compiler.origin(jit::arch_of_capability(info.major, info.minor)));
      }
    }
  }
  return origins;
}

}  // namespace

WarmResult warm_until(const WarmWork& work, const WarmOptions& options,
                      const std::function<bool()>& cancelled) {
  const auto start = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  Workshop shop{options, base::read_environment(), {}, {}, {}, {}, {}};
  constexpr int kMaxThreads = 1024;
  if (options.threads < 0 || options.threads > kMaxThreads) {
    base::fail(ErrorCode::kInvalidArgument,
               "threads is {}; give a number up to {}, or 0 for one per processor", options.threads,
               kMaxThreads);
  }
  DeviceOptions told;
  told.log = options.log;
  told.log_level = options.log_level;
  shop.log = log_of(told, shop.environment);
  std::vector<std::string> words = options.devices;
  if (words.empty()) words.push_back(choose_device().name);
  // The newest of several NVRTCs is taken, unless a driver of this machine has to load the kernels.
  int driver = 0;
  if (std::ranges::any_of(words,
                          [](const std::string& word) { return word.starts_with("cuda"); })) {
    shop.drivers[false] = open_driver(DeviceName{}, shop.environment);
    driver = shop.drivers[false]->version();
  }
  shop.nvrtc = std::make_shared<const abi::NvrtcLibrary>(
      abi::open_nvrtc(abi::default_search(shop.environment), driver));
  shop.templates = options.template_dir.empty()
                       ? jit::TemplateSet::embedded()
                       : jit::TemplateSet::from_folder(options.template_dir);
  WarmResult result;
  result.nvrtc_version = shop.nvrtc->report.version_text;
  Jobs jobs(cancelled);
  std::vector<std::string> wanted;
  for (const std::string& path : work.folders) {
    for (std::string& text : jit::wanted_in(TrustedFolder(path).open())) {
      wanted.push_back(std::move(text));
    }
  }
  for (const std::string& word : words) {
    for (const Target& target : targets_of(shop, word)) {
      result.devices.push_back(fmt::format("{} ({}, {})", target.name,
                                           jit::to_string(target.planner.limits.arch),
                                           jit::to_string(target.compiler->kind())));
      jobs.add(target, work);
      jobs.add(target, wanted);
    }
  }
  const jit::AheadResult made = jit::compile_ahead(
      jobs.jobs(), {.folder = options.folder,
                    .threads = options.threads,
                    .cancelled = cancelled,
                    .progress = [&](std::size_t done, const jit::AheadJob& last) {
                      if (!options.progress) return;
                      options.progress({static_cast<std::int64_t>(done), std::ssize(jobs.jobs()),
                                        jit::describe(last), seconds()});
                    }});
  result.kernels = std::ssize(jobs.jobs());
  result.compiled = made.compiled;
  result.there = made.there;
  result.left = made.left;
  result.cancelled = made.left > 0 || jobs.cancelled();
  result.bytes = made.bytes;
  result.failures = std::move(jobs.failures);
  for (const jit::AheadFailure& failure : made.failures) {
    result.failures.push_back({jobs.target(failure.job), jit::describe(jobs.jobs()[failure.job]),
                               failure.code, failure.error});
  }
  result.seconds = seconds();
  return result;
}

}  // namespace api

inline namespace v0 {

std::string shape_line(const Problem& problem, const PlanOptions& options) {
  return shape_log::shape_line(problem, options);
}

std::vector<KnownGpu> known_gpus() {
  std::vector<KnownGpu> gpus;
  for (const api::GpuModel& model : api::gpu_models()) {
    gpus.push_back({model.name,
                    fmt::format("{}, {} multiprocessors", model.description, model.multiprocessors),
                    jit::to_string(api::architecture_of(model))});
  }
  return gpus;
}

std::vector<PlanPreview> preview_plan(const DeviceOptions& device, const Problem& problem,
                                      const PlanOptions& options) {
  const base::Environment environment = base::read_environment();
  const base::Log log = api::log_of(device, environment);
  const api::TunedPlaces places = api::tuned_places(device.tuned_path, environment);
  const auto templates = device.template_dir.empty()
                             ? jit::TemplateSet::embedded()
                             : jit::TemplateSet::from_folder(device.template_dir);
  std::vector<PlanPreview> previews;
  for (const auto& [model, arch] : api::known_targets(device.name)) {
    const device::DeviceInfo info = api::info_of(*model);
    const planner::Planner planner =
        api::planner_for(model->name, info, arch, 0, places, *templates, log);
    planner::Preview made = planner.preview(problem, options, info);
    DeviceInfo on;
    on.name = model->name;
    api::describe_chip(info, arch, &on);
    previews.push_back({std::move(on), std::move(made.info), std::move(made.predicted)});
  }
  return previews;
}

WarmResult warm(const WarmWork& work, const WarmOptions& options) {
  return api::warm_until(work, options,
                         [&] { return options.cancel != nullptr && *options.cancel; });
}

std::string why_unused(const KernelSet& set, const DeviceInfo& device, bool compiled_ahead) {
  const std::array<std::string, 5> of_set = api::parts_of_origin(set.origin);
  const std::array<std::string, 5> of_device = api::parts_of_origin(device.kernel_origin);
  if (of_set[0].empty()) return set.origin;
  for (std::size_t part = 0; part < of_set.size(); ++part) {
    const bool any = part == 2 && (compiled_ahead || of_device[part] == "any nvrtc");
    if (of_set[part] == of_device[part] || any) continue;
    return fmt::format("made for {}, not {}", of_set[part], of_device[part]);
  }
  return "";
}

PruneResult prune_kernels(const PruneOptions& options) {
  if (std::isnan(options.older_than_seconds)) {
    base::fail(ErrorCode::kInvalidArgument,
               "older_than_seconds is NaN; give an age, or a negative number for any");
  }
  const api::TrustedFolder folder(options.folder);
  jit::PruneRules rules;
  rules.older_than_seconds = options.older_than_seconds;
  rules.max_bytes = options.max_bytes;
  rules.dry_run = options.dry_run;
  if (options.useless) {
    std::vector<jit::KernelOrigin> origins = api::origins_here();
    if (origins.empty()) {
      base::fail(ErrorCode::kDevice,
                 "there is no device here, real or simulated, so it is not known which kernels can "
                 "be used");
    }
    rules.keeps = [here = std::move(origins)](const jit::KernelOrigin& origin) {
      return std::ranges::any_of(here, [&](const jit::KernelOrigin& device) {
        return device.compiler.empty() ? jit::serves(origin, device) : origin == device;
      });
    };
  }
  const std::int64_t now = std::chrono::duration_cast<std::chrono::seconds>(
                               std::chrono::system_clock::now().time_since_epoch())
                               .count();
  jit::Pruned pruned = jit::prune(folder.open(), rules, now);
  return {.folder = folder.path(),
          .removed = pruned.removed,
          .removed_bytes = pruned.removed_bytes,
          .left = pruned.left,
          .left_bytes = pruned.left_bytes,
          .problems = std::move(pruned.problems)};
}

VerifyResult verify_kernels(const std::optional<std::string>& path, bool remove) {
  const api::TrustedFolder folder(path);
  const jit::Verified verified = jit::verify(folder.open(), remove);
  VerifyResult result{folder.path(), verified.kernels, verified.bytes, {}};
  for (const jit::Damaged& damaged : verified.damaged) {
    result.damaged.push_back({damaged.name, damaged.why, damaged.removed});
  }
  return result;
}

}  // namespace v0
}  // namespace annulus
