// Opens a device by its name.
#include <algorithm>
#include <optional>

#include "abi/libraries.h"
#include "abi/nvtx.h"
#include "annulus/simulator.h"
#include "api/impl.h"
#include "api/tuned_places.h"
#include "base/fail.h"
#include "device/simulator.h"

namespace annulus {
namespace api {
namespace {

// The simulated architectures, newest first.
constexpr const char* kSimulated[] = {"sm_90a", "sm_90", "sm_80"};

base::Log make_log(const DeviceOptions& options, const base::Environment& environment) {
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

// A simulated device where ANNULUS_REQUIRE_GPU asks for a GPU is an error, whoever named it.
void check_gpu(const base::Environment& environment, bool simulated, const std::string& name,
               const std::string& why) {
  if (!simulated || environment.require_gpu.empty() || environment.require_gpu == "0") return;
  base::fail(ErrorCode::kDevice,
             "ANNULUS_REQUIRE_GPU is '{}', and {} is simulated ({}); `annulus doctor` says what is "
             "wrong with the driver. Unset it to let the simulator serve",
             environment.require_gpu, name, why);
}

// For which architecture kernels are compiled, with a note where another NVRTC would do better.
void choose_architecture(const DeviceName& name, const LibraryReport& nvrtc, Device::Impl* impl) {
  const device::DeviceInfo& found = impl->context->info();
  const int driver = impl->context->driver().version();
  if (!found.simulated && nvrtc.version / 1000 > driver / 1000) {
    impl->log.write(
        base::LogLevel::kWarning,
        "NVRTC {} at {} is of a later major version than the driver, which is for CUDA "
        "{} and may refuse its kernels: install NVRTC of the driver's version, name its "
        "folder in ANNULUS_LIBRARY_PATH, or install a newer driver",
        nvrtc.version_text, nvrtc.path, abi::cuda_version_text(driver));
  }
  impl->arch = jit::arch_for_device(found.major, found.minor, found.tensor_maps, nvrtc.version);
  if (found.major == 9 && impl->arch.feature != 'a' && !found.simulated) {
    impl->log.write(
        base::LogLevel::kWarning,
        "{} runs kernels of the mma family alone: those of the wgmma family need tensor "
        "maps, which this driver {}, and NVRTC 12.0 or newer, which is {}",
        to_string(name), found.tensor_maps ? "has" : "lacks", nvrtc.version_text);
  }
}

// Makes the caches of kernels and of lists of tiles. Requires: the compiler is there.
void make_caches(const DeviceOptions& options, const base::Environment& environment,
                 Device::Impl* impl) {
  jit::DiskCacheOptions cache;
  cache.folder = options.cache_dir.value_or(base::default_cache_dir(environment));
  impl->disk = std::make_shared<jit::DiskCache>(cache, impl->log);
  impl->info.cache_dir = impl->disk->usable() ? cache.folder : "";
  impl->info.cache_problem = impl->disk->usable() ? "" : impl->disk->problem();
  impl->kernels = std::make_shared<jit::KernelCache>(impl->context, impl->compiler, impl->disk);
  impl->tiles = std::make_shared<attention::TileCache>(
      base::CacheLimits{options.host_lists.bytes, options.host_lists.entries});
  impl->device_tiles = std::make_shared<attention::DeviceTileCache>(
      impl->context, base::CacheLimits{options.device_lists.bytes, options.device_lists.entries});
}

// What people are told of the device. Requires: the architecture is chosen.
void describe(const DeviceName& name, const LibraryReport& nvrtc, Device::Impl* impl) {
  const device::DeviceInfo& found = impl->context->info();
  DeviceInfo& info = impl->info;
  info.name = to_string(name);
  info.description = found.name;
  info.architecture = jit::to_string(impl->arch);
  info.simulated = found.simulated;
  info.multiprocessors = found.multiprocessors;
  info.shared_bytes_per_block = found.shared_bytes_per_block_optin;
  info.memory_bytes = found.memory_bytes;
  info.ordinal = found.ordinal;
  info.driver_version = impl->context->driver().version();
  info.nvrtc_version = nvrtc.version_text;
}

// Requires: the device is described.
void open_tuned(const DeviceOptions& options, const base::Environment& environment,
                const jit::TemplateSet& templates, Device::Impl* impl) {
  TunedPlaces places = tuned_places(options.tuned_path, environment);
  autotune::StoreOptions tuned;
  tuned.folders = std::move(places.folders);
  tuned.shipped = std::move(places.shipped);
  // Kernels of other templates have no revision: their digest stands for it.
  std::optional<base::Digest> digest;
  if (templates.digest() != jit::TemplateSet::embedded()->digest()) digest = templates.digest();
  tuned.device = autotune::device_key(impl->context->info(), impl->info.architecture, digest);
  tuned.driver_version = impl->info.driver_version;
  tuned.limits = limits_of(*impl);
  impl->lacks_tuned_folder = places.lacks_folder;
  impl->info.tuned_path = places.path;
  impl->info.tuned_key = tuned.device.identity;
  impl->tuned = std::make_shared<autotune::TunedStore>(std::move(tuned), impl->log);
}

}  // namespace

DefaultDevice default_device(const base::Environment& environment) {
  if (!environment.device.empty()) {
    return {parse_device_name(environment.device), "ANNULUS_DEVICE says so"};
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

// The order is that of what needs what: the log, the context, NVRTC, the architecture, compiler and
// kernel caches, tile caches, info, tuned store.
Device open_on(device::DriverPointer driver, const DeviceName& name, const DeviceOptions& options,
               const base::Environment& environment) {
  if (!options.allocator.allocate != !options.allocator.release) {
    base::fail(ErrorCode::kInvalidArgument,
               "the allocator has no {}; give both functions, or neither",
               options.allocator.allocate ? "release" : "allocate");
  }
  auto impl = std::make_shared<Device::Impl>();
  impl->log = make_log(options, environment);
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

  auto nvrtc = std::make_shared<const abi::NvrtcLibrary>(
      abi::open_nvrtc(abi::default_search(environment), simulated ? 0 : driver->version()));
  choose_architecture(name, nvrtc->report, impl.get());
  const auto templates = options.template_dir.empty()
                             ? jit::TemplateSet::embedded()
                             : jit::TemplateSet::from_folder(options.template_dir);
  impl->compiler = std::make_shared<const jit::Compiler>(
      nvrtc, templates, simulated ? jit::ImageKind::kPtx : jit::ImageKind::kCubin);
  make_caches(options, environment, impl.get());
  describe(name, nvrtc->report, impl.get());
  impl->info.kernel_origin = impl->compiler->origin(impl->arch);
  open_tuned(options, environment, *templates, impl.get());
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
    // The caller named no device, so the error also says why this one was chosen.
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
