// Opens a device by its name.
#include <algorithm>
#include <optional>

#include "abi/libraries.h"
#include "abi/nvtx.h"
#include "abi/own_folders.h"
#include "annulus/simulator.h"
#include "api/impl.h"
#include "api/tuned_places.h"
#include "attention/plan/general.h"
#include "base/fail.h"
#include "base/join.h"
#include "device/simulator.h"
#include "jit/missing_kernel.h"

namespace annulus {
namespace api {
namespace {

// The simulated architectures, the newest first.
constexpr const char* kSimulated[] = {"sm_90a", "sm_90", "sm_80"};

abi::SimulatorOptions simulator_options(const SimulationOptions& options) {
  constexpr std::uint32_t kMaxThreads = 1024;
  if (options.threads > kMaxThreads) {
    base::fail(
        ErrorCode::kInvalidArgument,
        "a simulation on {} host threads; give a number up to {}, or 0 for one per processor",
        options.threads, kMaxThreads);
  }
  abi::SimulatorOptions raw;
  raw.checked = options.checked ? 1 : 0;
  raw.seed = options.seed;
  raw.threads = options.threads;
  return raw;
}

std::string known_devices(const device::Driver& driver, bool simulated) {
  if (!simulated) {
    return fmt::format("the CUDA driver has {} of them, from cuda:0 on", driver.device_count());
  }
  std::string text;
  for (const char* architecture : kSimulated) {
    text += fmt::format("{}sim:{}:0 to sim:{}:{}", text.empty() ? "simulated are " : " and ",
                        architecture, architecture, ANNULUS_SIMULATOR_DEVICES - 1);
  }
  return text;
}

// Throws for a simulated device if ANNULUS_REQUIRE_GPU requires a GPU, whether or not the caller
// named the device.
void check_gpu(const base::Environment& environment, bool simulated, const std::string& name,
               const std::string& why) {
  if (!simulated || environment.require_gpu.empty() || environment.require_gpu == "0") return;
  base::fail(
      ErrorCode::kDevice,
      "ANNULUS_REQUIRE_GPU is '{}', but {} is simulated ({}); `annulus doctor` reports what is "
      "wrong with the driver. Unset it to use the simulator",
      environment.require_gpu, name, why);
}

// Whether missing kernels are compiled.
bool may_compile(const DeviceOptions& options, const base::Environment& environment) {
  if (options.compile == Compile::kNever) return false;
  if (options.compile == Compile::kMissing) return true;
  if (environment.compile == "never") return false;
  if (environment.compile.empty() || environment.compile == "missing") return true;
  base::fail(ErrorCode::kInvalidArgument, "ANNULUS_COMPILE is '{}'; it may be missing or never",
             environment.compile);
}

// NVRTC; or, if it is missing or nothing is to be compiled, null and the reason.
std::shared_ptr<const abi::NvrtcLibrary> nvrtc_for(const DeviceOptions& options,
                                                   const base::Environment& environment,
                                                   const Device::Impl& impl) {
  if (!may_compile(options, environment)) {
    auto none = std::make_shared<abi::NvrtcLibrary>();
    none->report.problem =
        fmt::format("{} forbids compiling kernels; change it, or {}",
                    options.compile == Compile::kNever ? "the option compile" : "ANNULUS_COMPILE",
                    abi::compile_ahead_remedy());
    return none;
  }
  const device::Driver& driver = impl.context->driver();
  auto nvrtc = std::make_shared<const abi::NvrtcLibrary>(abi::find_nvrtc(
      abi::default_search(environment), impl.context->info().simulated ? 0 : driver.version()));
  const LibraryReport& report = nvrtc->report;
  if (!report.usable()) {
    impl.log.write(base::LogLevel::kWarning,
                   "only kernels that are compiled already will run, and a plan that needs another "
                   "one will fail: {}",
                   report.problem);
  } else if (!impl.context->info().simulated && report.version / 1000 > driver.version() / 1000) {
    impl.log.write(base::LogLevel::kWarning,
                   "NVRTC {} at {} is of a later major version than the driver, which is for CUDA "
                   "{} and may refuse its kernels: install NVRTC of the driver's version, name its "
                   "folder in ANNULUS_LIBRARY_PATH, or install a newer driver",
                   report.version_text, report.path, abi::cuda_version_text(driver.version()));
  }
  return nvrtc;
}

// Chooses the architecture for which kernels are searched and compiled, with a note if another
// NVRTC would allow a better one. If nothing compiles, it is the best architecture for which there
// are kernels. Requires: the compiler and the folders are open.
void choose_architecture(const DeviceName& name, Device::Impl* impl) {
  const device::DeviceInfo& found = impl->context->info();
  const jit::Compiler& compiler = *impl->compiler;
  if (!compiler.compiles()) {
    const jit::Arch best =
        jit::arch_for_device(found.major, found.minor, found.tensor_maps, jit::kAnyNvrtc);
    const jit::Arch other = jit::arch_of_capability(found.major, found.minor);
    const auto serves = [&](jit::Arch arch) {
      return impl->folders->any_of(compiler.origin(arch)) ||
             impl->disk->any_of(compiler.origin(arch));
    };
    impl->arch = best == other || serves(best) || !serves(other) ? best : other;
    return;
  }
  impl->arch =
      jit::arch_for_device(found.major, found.minor, found.tensor_maps, compiler.version());
  if (found.major == 9 && impl->arch.feature != 'a' && !found.simulated) {
    impl->log.write(
        base::LogLevel::kWarning,
        "{} runs kernels of the mma family alone: those of the wgmma family need tensor "
        "maps, which this driver {}, and NVRTC 12.0 or newer, which is {}",
        to_string(name), found.tensor_maps ? "has" : "lacks", impl->info.nvrtc_version);
  }
}

// Opens the folders of compiled kernels. Requires: the log is open.
void open_folders(const DeviceOptions& options, const base::Environment& environment,
                  Device::Impl* impl) {
  jit::DiskCacheOptions cache;
  cache.folder = options.cache_dir.value_or(base::default_cache_dir(environment));
  impl->disk = std::make_shared<jit::DiskCache>(cache, impl->log);
  impl->info.cache_dir = impl->disk->usable() ? cache.folder : "";
  impl->info.cache_problem = impl->disk->usable() ? "" : impl->disk->problem();
  impl->folders = std::make_shared<jit::KernelFolders>(
      kernel_folders(options.kernels_path, environment), impl->log);
  impl->info.kernels_path = base::join(impl->folders->folders(), ":");
}

// Makes the caches of kernels and of lists of tiles. Requires: compiler and folders are open.
void make_caches(const DeviceOptions& options, Device::Impl* impl) {
  impl->kernels =
      std::make_shared<jit::KernelCache>(impl->context, impl->compiler, impl->disk, impl->folders);
  impl->tiles = std::make_shared<attention::TileCache>(
      base::CacheLimits{options.host_lists.bytes, options.host_lists.entries});
  impl->device_tiles = std::make_shared<attention::DeviceTileCache>(
      impl->context, base::CacheLimits{options.device_lists.bytes, options.device_lists.entries});
}

// Requires: the architecture is chosen.
void describe(const DeviceName& name, Device::Impl* impl) {
  const device::DeviceInfo& found = impl->context->info();
  describe_chip(found, impl->arch, &impl->info);
  impl->info.name = to_string(name);
  impl->info.ordinal = found.ordinal;
  impl->info.driver_version = impl->context->driver().version();
}

// Requires: the device is described.
void open_tuned(const DeviceOptions& options, const base::Environment& environment,
                const jit::TemplateSet& templates, Device::Impl* impl) {
  const TunedPlaces places = tuned_places(options.tuned_path, environment);
  tuned::StoreOptions tuned = store_options(places, impl->context->info(), limits_of(*impl),
                                            impl->info.driver_version, templates);
  impl->lacks_tuned_folder = places.lacks_folder;
  impl->info.tuned_path = places.path;
  impl->info.tuned_key = tuned.device.identity;
  impl->tuned = std::make_shared<tuned::TunedStore>(std::move(tuned), impl->log);
}

// Requires: the log and the context exist.
void open_shape_log(const std::string& path, Device::Impl* impl) {
  if (path.empty()) return;
  if (!path.starts_with('/')) {
    base::fail(ErrorCode::kInvalidArgument,
               "the shape log '{}' is not an absolute path, so it would be another file in each "
               "folder where the program is started; give a path that begins with '/'",
               path);
  }
  shape_log::ShapeLogOptions options;
  options.path = path;
  options.on_failure = [context = impl->context] {
    context->tally().add(base::Count::shape_log_failures);
  };
  impl->shape_log = base::share_in_process(std::make_unique<shape_log::ShapeLog>(
      std::move(options), impl->shape_counts, impl->log, impl->noted));
  impl->counts_shapes = true;
}

}  // namespace

void describe_chip(const device::DeviceInfo& chip, jit::Arch arch, DeviceInfo* info) {
  info->description = chip.name;
  info->architecture = jit::to_string(arch);
  info->simulated = chip.simulated;
  info->multiprocessors = chip.multiprocessors;
  info->shared_bytes_per_block = chip.shared_bytes_per_block_optin;
  info->memory_bytes = chip.memory_bytes;
}

base::Log log_of(const DeviceOptions& options, const base::Environment& environment) {
  if (!options.log) return {};
  constexpr base::LogLevel kLevels[] = {base::LogLevel::kError, base::LogLevel::kWarning,
                                        base::LogLevel::kInfo, base::LogLevel::kDebug};
  base::LogLevel level = static_cast<base::LogLevel>(options.log_level);
  bool known = environment.log.empty();
  for (const base::LogLevel each : kLevels) {
    if (environment.log != base::to_string(each)) continue;
    known = true;
    level = std::max(level, each);
  }
  const base::Log log(
      [callback = options.log](base::LogLevel at, std::string_view text) {
        callback(static_cast<LogLevel>(at), text);
      },
      level);
  if (!known) {
    log.write(base::LogLevel::kWarning,
              "ANNULUS_LOG is '{}'; it may be error, warning, info or debug", environment.log);
  }
  return log;
}

std::vector<std::string> kernel_folders(const std::optional<std::string>& path,
                                        const base::Environment& environment) {
  const std::string text = path.value_or(environment.kernels);
  const bool nowhere = path ? base::search_path_of(*path).empty() : text == "none";
  if (nowhere) return {};
  return jit::kernel_path(text, abi::own_folders());
}

DefaultDevice default_device(const base::Environment& environment) {
  if (!environment.device.empty()) {
    return {parse_device_name(environment.device), "ANNULUS_DEVICE names it"};
  }
  std::string why = "no CUDA driver was found";
  abi::CudaLibrary library = abi::find_cuda(abi::default_search(environment));
  if (library.report.usable()) {
    try {
      const device::Driver driver(std::move(library));
      if (driver.device_count() > 0) return {DeviceName{}, "the first device of the CUDA driver"};
      why = "the CUDA driver has no device";
    } catch (const Error& error) {
      why = fmt::format("the CUDA driver is not usable ({})", error.what());
    }
  } else if (!library.report.path.empty()) {
    why = library.report.problem;
  }
  return {DeviceName{true, kSimulated[0], 0},
          fmt::format("the newest simulated architecture: {}", why)};
}

device::DriverPointer open_driver(const DeviceName& name, const base::Environment& environment) {
  const abi::LibrarySearch search = abi::default_search(environment);
  return std::make_shared<const device::Driver>(name.simulated ? abi::open_simulator(search)
                                                               : abi::open_cuda(search));
}

int ordinal_of(const DeviceName& name, const device::Driver& driver) {
  std::optional<int> ordinal;
  if (name.simulated) {
    ordinal = device::simulated_ordinal(driver, name.architecture, name.index);
  } else if (name.index < driver.device_count()) {
    ordinal = name.index;
  }
  if (!ordinal) {
    base::fail(ErrorCode::kDevice, "there is no device {}; {}", to_string(name),
               known_devices(driver, name.simulated));
  }
  return *ordinal;
}

// Loads the general kernels on a thread of its own. If the device is closed meanwhile, loading ends
// after the current kernel.
void load_general_kernels(const Device::Impl& impl) {
  const auto load = [arch = impl.arch, jobs = impl.late_jobs->under_way(),
                     device = std::weak_ptr(impl.kernels), tuned = std::weak_ptr(impl.tuned),
                     log = impl.log, noted = impl.noted] {
    const auto load_one = [&](const jit::KernelSpec& spec) {
      const std::shared_ptr<jit::KernelCache> kernels = device.lock();
      if (!kernels || base::Background::process_ends()) return false;
      try {
        const jit::KernelsFor wanted([] { return "a device that loads all general kernels"; });
        kernels->get(spec);
      } catch (const std::exception& error) {
        if (base::Background::process_ends()) return false;
        const std::string why = error.what();
        noted->write_once(
            log, fmt::format("a general kernel is not loaded: {}", why.substr(0, why.find('\n'))));
      }
      return true;
    };
    if (!jobs->begin()) return;
    if (const auto store = tuned.lock()) store->empty();  // reads the folders of tuned results
    for (const jit::KernelSpec& spec : attention::general_specs(arch)) {
      if (!load_one(spec)) break;
    }
    jobs->end();
  };
  try {
    impl.background.start(load, [] {});
  } catch (const std::exception& error) {
    impl.noted->write_once(impl.log,
                           fmt::format("general kernels are not loaded: {}", error.what()));
  }
}

// The order follows from what needs what: the log, the context, folders of kernels, NVRTC and the
// compiler, the architecture, the caches of kernels and tiles, info, and the tuned store.
Device open_on(device::DriverPointer driver, const DeviceName& name, const DeviceOptions& options,
               const base::Environment& environment) {
  if (!options.allocator.allocate != !options.allocator.release) {
    base::fail(ErrorCode::kInvalidArgument,
               "the allocator has no {}; give both functions, or neither",
               options.allocator.allocate ? "release" : "allocate");
  }
  auto impl = std::make_shared<Device::Impl>();
  impl->log = log_of(options, environment);
  if (options.max_device_bytes < 0) {
    base::fail(ErrorCode::kInvalidArgument,
               "max_device_bytes is {}; give 0, for no limit, or a number of bytes",
               options.max_device_bytes);
  }
  impl->context =
      device::Context::retain(driver, ordinal_of(name, *driver), options.allocator,
                              {.max_bytes = static_cast<std::size_t>(options.max_device_bytes)});
  if (options.log) {
    impl->simulator_log = std::make_unique<device::SimulatorLog>(impl->context, impl->log);
  }
  const bool simulated = impl->context->info().simulated;
  check_gpu(environment, simulated, to_string(name), "its driver is the simulator");
  impl->check_operands = options.check_operands;
  impl->background = base::Background(options.executor);
  impl->own_templates = !options.template_dir.empty();
  if (options.time_every_nth_run < 0) {
    base::fail(ErrorCode::kInvalidArgument,
               "time_every_nth_run is {}; give 0, for no run, 1, for every run, or more",
               options.time_every_nth_run);
  }
  if (options.time_every_nth_run > 0) {
    impl->timer = std::make_shared<device::RunTimer>(impl->context, options.time_every_nth_run,
                                                     to_string(name));
  }
  device::set_simulator_options(*impl->context, simulator_options(options.simulation));

  open_folders(options, environment, impl.get());
  const auto nvrtc = nvrtc_for(options, environment, *impl);
  impl->info.nvrtc_version = nvrtc->report.usable() ? nvrtc->report.version_text : "";
  impl->info.compile_problem = nvrtc->report.problem;
  const auto templates = options.template_dir.empty()
                             ? jit::TemplateSet::embedded()
                             : jit::TemplateSet::from_folder(options.template_dir);
  impl->compiler = std::make_shared<const jit::Compiler>(
      nvrtc, templates, simulated ? jit::ImageKind::kPtx : jit::ImageKind::kCubin);
  choose_architecture(name, impl.get());
  make_caches(options, impl.get());
  describe(name, impl.get());
  impl->info.kernel_origin = jit::to_string(impl->compiler->origin(impl->arch));
  open_tuned(options, environment, *templates, impl.get());
  open_shape_log(options.shape_log, impl.get());
  if (options.load_general_kernels) load_general_kernels(*impl);
  return Device(std::move(impl));
}

}  // namespace api

inline namespace v0 {

Device Device::open(const DeviceOptions& options) {
  const base::Environment environment = base::read_environment();
  const std::string no_ranges = abi::open_nvtx(environment.nvtx);
  const base::Span span("open", options.name);
  const auto opened = [&](Device device) {
    if (!no_ranges.empty()) {
      api::inside(device).log.write(base::LogLevel::kWarning, "{}", no_ranges);
    }
    return device;
  };
  if (!options.name.empty()) {
    const api::DeviceName name = api::parse_device_name(options.name);
    api::check_gpu(environment, name.simulated, options.name, "by its name");
    return opened(api::open_on(api::open_driver(name, environment), name, options, environment));
  }
  const api::DefaultDevice chosen = api::default_device(environment);
  if (chosen.name.simulated) {
    api::check_gpu(environment, true, api::to_string(chosen.name), chosen.reason);
  }
  device::DriverPointer driver;
  try {
    driver = api::open_driver(chosen.name, environment);
  } catch (const Error& error) {
    // The caller named no device, so the error also states why this device was chosen.
    base::fail(error.code(), "{} was to be opened ({}): {}", api::to_string(chosen.name),
               chosen.reason, error.what());
  }
  Device device = api::open_on(std::move(driver), chosen.name, options, environment);
  if (chosen.name.simulated && environment.device.empty()) {
    api::inside(device).log.write(
        base::LogLevel::kWarning,
        "{} was opened, a simulated device, far slower than a GPU: {}. Name a "
        "device, or set ANNULUS_REQUIRE_GPU=1 to make this an error",
        device.info().name, chosen.reason);
  }
  return opened(std::move(device));
}

Device Device::open(std::string_view name) {
  DeviceOptions options;
  options.name = name;
  return open(options);
}

void Device::set_simulation(const SimulationOptions& options) const {
  device::set_simulator_options(*api::inside(*this).context, api::simulator_options(options));
}

}  // namespace v0
}  // namespace annulus
