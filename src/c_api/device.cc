// The C interface of devices. Each function converts its arguments and calls annulus/device.h.
#include <limits>

#include "api/impl.h"
#include "c_api/functions.h"

namespace annulus::c_api {
namespace {

static_assert(ANNULUS_LOG_ERROR == static_cast<int>(LogLevel::kError));
static_assert(ANNULUS_LOG_WARNING == static_cast<int>(LogLevel::kWarning));
static_assert(ANNULUS_LOG_INFO == static_cast<int>(LogLevel::kInfo));
static_assert(ANNULUS_LOG_DEBUG == static_cast<int>(LogLevel::kDebug));

constexpr StructName kDeviceOptions = {"annulus_device_options", "ANNULUS_DEVICE_OPTIONS_INIT"};
constexpr StructName kDeviceInfo = {"annulus_device_info", "ANNULUS_DEVICE_INFO_INIT"};

constexpr StructName kMemoryStatistics = {"annulus_memory_statistics",
                                          "ANNULUS_MEMORY_STATISTICS_INIT"};
constexpr StructName kCacheLimits = {"annulus_cache_limits", "ANNULUS_CACHE_LIMITS_INIT"};

std::string text_or_empty(const char* text) { return text == nullptr ? "" : text; }

AllocatorCallbacks allocator_of(const annulus_device_options& c) {
  AllocatorCallbacks callbacks;
  if (c.allocate != nullptr) {
    callbacks.allocate = [allocate = c.allocate, user = c.allocator_user](std::size_t bytes,
                                                                          std::size_t alignment) {
      void* address = nullptr;
      const int code = allocate(user, bytes, alignment, &address);
      if (code != 0) {
        base::fail(ErrorCode::kOutOfMemory,
                   "the caller's allocator refused {} bytes: it returned {}; let it hold "
                   "more, or make the problem smaller",
                   bytes, code);
      }
      return address;
    };
  }
  if (c.release != nullptr) {
    callbacks.release = [release = c.release, user = c.allocator_user](
                            void* address, std::size_t bytes) { release(user, address, bytes); };
  }
  return callbacks;
}

struct TaskObject {
  std::function<void()> run;
};
HandleTable<TaskObject>& tasks() {
  static auto* table = new HandleTable<TaskObject>("task", 0xa7);
  return *table;
}
using TaskPin = HandleTable<TaskObject>::Pin;

}  // namespace

std::function<void(std::function<void()>)> executor_of(annulus_execute_callback execute,
                                                       void* user) {
  if (execute == nullptr) return {};
  return [execute, user](std::function<void()> task) {
    const std::uintptr_t handle =
        tasks().insert(std::make_unique<TaskObject>(TaskObject{std::move(task)}));
    const int code = execute(user, reinterpret_cast<annulus_task*>(handle));
    if (code == 0) return;
    tasks().erase(handle);
    base::fail(ErrorCode::kInvalidArgument,
               "the host did not take the task: its executor returned {}", code);
  };
}

namespace {

// Removes a task from the table, so that no other thread runs it.
std::function<void()> take(annulus_task* task) {
  std::function<void()> run;
  {
    const TaskPin pin(tasks(), number(task));
    run = pin->run;
  }
  tasks().erase(number(task));
  return run;
}

DeviceOptions options_of(const annulus_device_options& c) {
  DeviceOptions options;
  options.name = text_or_empty(c.name);
  if (c.cache_dir != nullptr) options.cache_dir = c.cache_dir;
  if (c.tuned_path != nullptr) options.tuned_path = c.tuned_path;
  if (c.kernels_path != nullptr) options.kernels_path = c.kernels_path;
  if (c.compile < ANNULUS_COMPILE_DEFAULT || c.compile > ANNULUS_COMPILE_NEVER) {
    base::fail(ErrorCode::kInvalidArgument, "compile is {}; give one of ANNULUS_COMPILE_*",
               c.compile);
  }
  options.compile = static_cast<Compile>(c.compile);
  options.template_dir = text_or_empty(c.template_dir);
  if (c.log != nullptr) {
    options.log = [log = c.log, user = c.log_user](LogLevel level, std::string_view text) {
      log(user, static_cast<std::int32_t>(level), std::string(text).c_str());
    };
  }
  if (c.log_level < ANNULUS_LOG_ERROR || c.log_level > ANNULUS_LOG_DEBUG) {
    base::fail(ErrorCode::kInvalidArgument, "log_level is {}; give one of ANNULUS_LOG_*",
               c.log_level);
  }
  options.log_level = static_cast<LogLevel>(c.log_level);
  options.allocator = allocator_of(c);
  options.simulation = simulation_of(c.simulation_checked, c.simulation_seed, c.simulation_threads);
  options.host_lists = limits_of(c.host_lists);
  options.device_lists = limits_of(c.device_lists);
  options.check_operands = truth("check_operands", c.check_operands);
  options.max_device_bytes = c.max_device_bytes;
  options.time_every_nth_run = c.time_every_nth_run;
  options.executor = executor_of(c.execute, c.execute_user);
  options.load_general_kernels = truth("load_general_kernels", c.load_general_kernels);
  options.shape_log = text_or_empty(c.shape_log);
  return options;
}

}  // namespace

SimulationOptions simulation_of(std::int32_t checked, std::uint64_t seed, std::int64_t threads) {
  if (threads < 0 || threads > std::numeric_limits<std::int32_t>::max()) {
    base::fail(ErrorCode::kInvalidArgument,
               "simulation_threads is {}; give a number of threads, or 0 for one per processor",
               threads);
  }
  return {.checked = truth("simulation_checked", checked),
          .seed = seed,
          .threads = static_cast<std::uint32_t>(threads)};
}

LayoutCacheLimits limits_of(const annulus_cache_limits* given) {
  if (given == nullptr) return {};
  const annulus_cache_limits c =
      read_struct(kCacheLimits, given, annulus_cache_limits ANNULUS_CACHE_LIMITS_INIT);
  if (c.bytes < 0 || c.entries < 0) {
    base::fail(ErrorCode::kInvalidArgument,
               "a cache of {} bytes and {} entries; give 0, for none, or more", c.bytes, c.entries);
  }
  return {c.bytes, c.entries};
}

}  // namespace annulus::c_api

extern "C" {

annulus_status annulus_task_run(annulus_task* task) {
  return guarded([&] { take(task)(); });
}

annulus_status annulus_task_drop(annulus_task* task) {
  return guarded([&] { take(task); });
}

annulus_status annulus_device_open(const annulus_device_options* given, annulus_device** device) {
  return guarded([&] {
    check_pointer("device (where the handle goes)", device);
    const annulus_device_options defaults = ANNULUS_DEVICE_OPTIONS_INIT;
    const annulus_device_options options =
        given == nullptr ? defaults : read_struct(kDeviceOptions, given, defaults);
    auto object = std::make_unique<DeviceObject>(Device::open(options_of(options)));
    *device = reinterpret_cast<annulus_device*>(devices().insert(std::move(object)));
  });
}

annulus_status annulus_device_close(annulus_device* device) {
  return guarded([&] {
    // After its callback returns, the tuning continues to use the device.
    if (const DevicePin pin(devices(), number(device)); inside(pin->device).attached->runs_here()) {
      base::fail(
          ErrorCode::kInvalidArgument,
          "a callback of a background tuning closes the device that it tunes on; close it on "
          "another thread, or when the tuning has ended");
    }
    devices().erase(number(device));
  });
}

annulus_status annulus_device_flush_shape_log(annulus_device* device) {
  return guarded([&] { DevicePin(devices(), number(device))->device.flush_shape_log(); });
}

annulus_status annulus_device_get_info(annulus_device* device, annulus_device_info* to) {
  return guarded([&] {
    const DevicePin pin(devices(), number(device));
    const DeviceInfo& info = pin->device.info();
    annulus_device_info c = ANNULUS_DEVICE_INFO_INIT;
    c.name = info.name.c_str();
    c.description = info.description.c_str();
    c.architecture = info.architecture.c_str();
    c.nvrtc_version = info.nvrtc_version.c_str();
    c.cache_dir = info.cache_dir.c_str();
    c.cache_problem = info.cache_problem.c_str();
    c.tuned_path = info.tuned_path.c_str();
    c.simulated = info.simulated ? 1 : 0;
    c.driver_version = info.driver_version;
    c.multiprocessors = info.multiprocessors;
    c.shared_bytes_per_block = info.shared_bytes_per_block;
    c.memory_bytes = info.memory_bytes;
    c.ordinal = info.ordinal;
    c.tuned_key = info.tuned_key.c_str();
    c.kernel_origin = info.kernel_origin.c_str();
    c.compile_problem = info.compile_problem.c_str();
    c.kernels_path = info.kernels_path.c_str();
    write_struct(kDeviceInfo, to, c);
  });
}

annulus_status annulus_device_driver_entry(annulus_device* device, const char* name, void** entry) {
  return guarded([&] {
    const DevicePin pin(devices(), number(device));
    check_pointer("name (of a function of the driver)", name);
    check_pointer("entry (where the function goes)", entry);
    *entry = pin->device.driver_entry(name);
  });
}

annulus_status annulus_device_allocate(annulus_device* device, size_t bytes, void** memory) {
  return guarded([&] {
    const DevicePin pin(devices(), number(device));
    check_pointer("memory (where the address goes)", memory);
    DeviceMemory made = pin->device.allocate(bytes);
    void* const address = made.data();
    if (address != nullptr) {
      const std::lock_guard lock(pin->mutex);
      pin->memory.emplace(address, std::move(made));
    }
    *memory = address;
  });
}

annulus_status annulus_device_release(annulus_device* device, void* memory) {
  return guarded([&] {
    const DevicePin pin(devices(), number(device));
    if (memory == nullptr) return;
    const std::lock_guard lock(pin->mutex);
    const auto found = pin->memory.find(memory);
    if (found == pin->memory.end()) {
      base::fail(ErrorCode::kInvalidArgument,
                 "{} is not memory of this device; was it released already?", memory);
    }
    pin->memory.erase(found);
  });
}

annulus_status annulus_device_copy_to_device(annulus_device* device, void* to, const void* from,
                                             size_t bytes) {
  return guarded([&] {
    const DevicePin pin(devices(), number(device));
    pin->device.copy_to_device(to, from, bytes);
  });
}

annulus_status annulus_device_copy_to_host(annulus_device* device, void* to, const void* from,
                                           size_t bytes) {
  return guarded([&] {
    const DevicePin pin(devices(), number(device));
    pin->device.copy_to_host(to, from, bytes);
  });
}

annulus_status annulus_device_memory_statistics(annulus_device* device,
                                                annulus_memory_statistics* to) {
  return guarded([&] {
    const MemoryStatistics now = DevicePin(devices(), number(device))->device.memory_statistics();
    annulus_memory_statistics c = ANNULUS_MEMORY_STATISTICS_INIT;
    c.held_bytes = now.held_bytes;
    c.used_bytes = now.used_bytes;
    c.waiting_bytes = now.waiting_bytes;
    c.peak_held_bytes = now.peak_held_bytes;
    c.peak_used_bytes = now.peak_used_bytes;
    c.largest_free_bytes = now.largest_free_bytes;
    c.slabs = now.slabs;
    c.blocks = now.blocks;
    c.slabs_taken = now.slabs_taken;
    c.slabs_given_back = now.slabs_given_back;
    c.lists_bytes = now.lists_bytes;
    c.tables_bytes = now.tables_bytes;
    c.selection_bytes = now.selection_bytes;
    c.caller_bytes = now.caller_bytes;
    c.scratch_bytes = now.scratch_bytes;
    write_struct(kMemoryStatistics, to, c);
  });
}

annulus_status annulus_device_trim(annulus_device* device, size_t bytes, size_t* given_back) {
  return guarded([&] {
    const std::size_t given = DevicePin(devices(), number(device))->device.trim(bytes);
    if (given_back != nullptr) *given_back = given;
  });
}

annulus_status annulus_device_synchronize(annulus_device* device) {
  return guarded([&] { DevicePin(devices(), number(device))->device.synchronize(); });
}

}  // extern "C"
