#ifndef ANNULUS_DEVICE_H_
#define ANNULUS_DEVICE_H_

// Opens a device, plans problems on it and runs the plans:
//
//   Device device = Device::open();                 // the first GPU, else a simulated one
//   Plan plan = device.plan(problem);               // chooses and compiles; may take a second
//   plan.run(stream, operands, workspace);          // asynchronous, allocates nothing
//
// A simulated device behaves like a GPU and runs the same kernels. Its memory is host memory, and
// its times do not predict a GPU's.
//
// Device memory. The library takes all device memory that it needs (lists of tiles, buffers of
// rings, DeviceMemory) from the caller's allocator if DeviceOptions has one, else from cuMemAlloc.
// It takes slabs of 2 MiB and more, cuts them into blocks itself and keeps them. If a slab is
// refused, it requests only the bytes that it needs. Running a plan allocates nothing.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "annulus/layout.h"
#include "annulus/observe.h"
#include "annulus/plan.h"
#include "annulus/problem.h"
#include "annulus/types.h"
#include "annulus/version.h"

namespace annulus::inline v0 {

struct Selection;  // annulus/selection.h

// The caller's pool of device memory. Set both functions or neither. The library calls them with
// the device's context current, on the thread that called the library or on a thread that compiles
// for a plan (PlanOptions::wait), perhaps on several threads at a time. What they use must outlive
// the device, its plans and its memory. They must not call the library with the device.
struct AllocatorCallbacks {
  // Returns `bytes` > 0 bytes of device memory at a multiple of `alignment` (256). Every stream of
  // the device's primary context may use the memory at once: no pending work reads or writes it.
  // After a null result or an exception that is not an Error, the call that needed the memory
  // throws Error{kOutOfMemory}. An Error is passed on to its caller.
  std::function<void*(std::size_t bytes, std::size_t alignment)> allocate;
  // Takes back memory that `allocate` returned, with the same size. All work that used the memory
  // has ended, so the pool may reuse it at once. The library calls this when the device and its
  // plans are gone, in Device::trim, when memory runs out, and when more than 64 MiB are unused.
  // Exceptions are ignored, because destructors call this.
  std::function<void(void* address, std::size_t bytes)> release;
};

enum class LogLevel : int { kError = 0, kWarning = 1, kInfo = 2, kDebug = 3 };
// Receives a line of the log. It is called from any thread, perhaps from several at a time, during
// a call of the library or on the library's own threads. Its exceptions are ignored, so that a log
// line never makes a call fail. It must not call the library with the same device.
using LogCallback = std::function<void(LogLevel, std::string_view)>;

// How a simulated device runs. A GPU ignores these options.
struct SimulationOptions {
  bool checked = true;        // find races, uninitialised reads and lost copies; false is faster
  std::uint64_t seed = 0;     // decides the order of warps and when asynchronous copies land
  std::uint32_t threads = 0;  // host threads, up to 1024; 0: one per processor
};

// Which kernels a device compiles.
enum class Compile : int {
  kDefault = 0,  // the environment's ANNULUS_COMPILE ("missing" or "never"), else kMissing
  kMissing = 1,  // kernels that are not found compiled
  // No kernels: a plan whose kernel is not found compiled throws Error{kLibrary}, which names the
  // kernel. NVRTC is not opened, as on a machine without it.
  kNever = 2,
};

struct DeviceOptions {
  // The name of the device: "cuda:N", "sim:sm_80", "sim:sm_90a", "sim:sm_90a:N", or "cuda" for the
  // first GPU, which is an error if there is no GPU. If the name is empty, ANNULUS_DEVICE of the
  // environment names the device. If that is not set, it is the first GPU, else the newest
  // simulated architecture with a warning in the log, because simulation is slower by orders of
  // magnitude. With ANNULUS_REQUIRE_GPU=1 in the environment a simulated device is an error.
  std::string name;
  // The folder where compiled kernels are kept. Not set: ANNULUS_CACHE_DIR, else the user's cache
  // folder. Empty: no kernel is kept on disk.
  std::optional<std::string> cache_dir;
  // Folders of kernels that were compiled ahead (annulus/kernels.h), separated by ':'. After them
  // the library searches annulus/kernels next to libannulus.so. It only reads these folders. Not
  // set: ANNULUS_KERNELS, in which "none" means an empty text. Empty: no folder is searched, not
  // even the one next to the library.
  std::optional<std::string> kernels_path;
  Compile compile = Compile::kDefault;
  // Folders and packs (files that end in ".pack") of tuned results, separated by ':'. After them
  // the library searches the results that were installed with it. New results are written to the
  // first folder that is writable (annulus/tune.h). Not set: ANNULUS_TUNED, else a folder of the
  // user's cache. Empty: no results are read, and new ones are kept in memory only.
  std::optional<std::string> tuned_path;
  // A folder of kernel templates that replace the built-in ones, for work on the templates.
  std::string template_dir;
  LogCallback log;
  LogLevel log_level = LogLevel::kWarning;
  AllocatorCallbacks allocator;  // source of device memory; not set: cuMemAlloc
  // The most device memory that the library may hold at a time, including Device::allocate; 0: no
  // limit. A call that needs more releases all unused memory, and if that does not suffice it
  // throws Error{kOutOfMemory}.
  std::int64_t max_device_bytes = 0;
  // Limits of the caches of tile lists that plans share, in host memory and in device memory. A
  // list that is dropped from a cache lives as long as a plan holds it. With 0 entries plans share
  // no lists.
  LayoutCacheLimits host_lists;
  LayoutCacheLimits device_lists;
  SimulationOptions simulation;
  // For debugging: before each run the driver checks that every operand and the workspace are
  // memory that the device can read (cuPointerGetAttribute). If one is not, the run throws
  // Error{kInvalidArgument}. Without this check, a pointer to the host's stack or heap makes the
  // kernel fault, and the context is lost. It costs some microseconds for each run.
  bool check_operands = false;
  // Each n-th run of a plan or a bound call is timed on the device, by events before and after it;
  // 0: no run is timed. A timed run takes a lock for a moment and some microseconds. Runs of rings
  // are not timed. Runs during capture, and runs while 64 timed runs are pending, are not timed
  // either; Metrics::untimed_runs counts these.
  std::int64_t time_every_nth_run = 0;
  // Runs the tasks that compile kernels for plans that do not wait (PlanOptions::wait). The library
  // calls it with a task; the host calls the task once, from any thread, now or later. A task takes
  // up to seconds. If the executor throws, or destroys the task without calling it, the plan keeps
  // its general kernel. Not set: up to four threads of the library run them.
  std::function<void(std::function<void()> task)> executor;
  // After the device is open, loads all general kernels of its architecture
  // (docs/embedding.md#plans-that-do-not-wait) on another thread, so that no plan waits for one.
  // General kernels that were compiled ahead are read, the others are compiled. If false, each
  // general kernel is loaded by the first plan that does not wait and has its head dims and dtype.
  bool load_general_kernels = false;
  // The absolute path of a file in which the device counts the problems and batches that it plans;
  // empty: no file. `annulus tune --shapes` and `annulus warm --shapes` read its lines
  // (docs/tuning.md#what-an-engine-plans). A thread of the library writes the file when there is
  // something new, at most once a second and at least once a minute, and when the device is closed;
  // planning never waits for the file. Several devices and processes may share a file, which then
  // counts the plans of all of them. If the file cannot be written, the log has one line about it.
  // A ring is counted by the line of its step, and a batch by the line of its bounds. Plans with a
  // selection or with a layout that was not read from a file are counted as left out.
  std::string shape_log;
};

// The counters of a simulated device since they were last cleared, by name in a fixed order.
using Counters = std::vector<std::pair<std::string, std::uint64_t>>;

struct DeviceInfo {
  std::string name;          // the name for Device::open
  std::string description;   // the driver's name of the device
  std::string architecture;  // "sm_80", "sm_90a", ...
  bool simulated = false;
  int multiprocessors = 0;
  std::int64_t shared_bytes_per_block = 0;  // the most shared memory that a CTA can have
  std::int64_t memory_bytes = 0;
  int ordinal = 0;            // the device's number in the driver (cuDeviceGet)
  int driver_version = 0;     // 13000 is 13.0
  std::string nvrtc_version;  // "13.0"; empty if NVRTC was not opened
  // Why no kernel can be compiled: NVRTC is missing or unfit, or DeviceOptions::compile is kNever.
  // Plans whose kernels are on disk still work. Empty if kernels can be compiled.
  std::string compile_problem;
  // The search path of compiled kernels: folders, separated by ':', including the library's.
  std::string kernels_path;
  std::string cache_dir;      // empty: no kernel is kept on disk
  std::string cache_problem;  // why cache_dir is empty, if a folder was requested
  std::string tuned_path;     // the search path of tuned results
  // The chip, and whether times are measured. A tuned result that was found on this device has the
  // same text (TunedEntry::device).
  std::string tuned_key;
  // The origin that compiled kernels need to run on this device (KernelSet::origin): architecture,
  // NVRTC version and digest of the sources. If no kernel can be compiled, and in folders of
  // kernels compiled ahead, the NVRTC version may be any (why_unused in annulus/kernels.h).
  std::string kernel_origin;
};

// Counters of the two caches of tile lists: `host` counts lists that are made, `device` lists that
// are uploaded. Plans whose kernels compute their tiles need no list.
struct ListCounters {
  LayoutCacheCounters host;
  LayoutCacheCounters device;
};

// The device memory that the library holds. It takes slabs from the allocator and cuts them into
// blocks. A released block waits until no work can use it any more.
struct MemoryStatistics {
  std::int64_t held_bytes = 0;     // all slabs
  std::int64_t used_bytes = 0;     // blocks in use
  std::int64_t waiting_bytes = 0;  // released blocks that still wait
  std::int64_t peak_held_bytes = 0;
  std::int64_t peak_used_bytes = 0;
  std::int64_t largest_free_bytes = 0;  // the largest free block
  std::int64_t slabs = 0;
  std::int64_t blocks = 0;  // blocks in use
  // Slabs taken from the allocator and returned to it since the device was opened.
  std::int64_t slabs_taken = 0;
  std::int64_t slabs_given_back = 0;
  // The uses of the blocks in use; their sum is used_bytes.
  std::int64_t lists_bytes = 0;      // lists of tiles, in plans and in the cache
  std::int64_t tables_bytes = 0;     // other tables that plans read
  std::int64_t selection_bytes = 0;  // bits of selections
  std::int64_t caller_bytes = 0;     // Device::allocate
  std::int64_t scratch_bytes = 0;    // scratch memory of running calls such as tune()
};

// Owns device memory. Its destructor releases the memory and does not wait: work of the device that
// was queued before may still use the memory, and the library reuses it or returns it to the
// allocator after that work has ended.
class ANNULUS_EXPORT DeviceMemory {
 public:
  struct Impl;
  DeviceMemory();
  explicit DeviceMemory(std::unique_ptr<Impl> impl);
  DeviceMemory(DeviceMemory&&) noexcept;
  DeviceMemory& operator=(DeviceMemory&&) noexcept;
  ~DeviceMemory();

  void* data() const;  // null if bytes() is 0
  std::size_t bytes() const;

 private:
  std::unique_ptr<Impl> impl_;
};

// An opened device. Several threads may use it at a time, and copies share it.
class ANNULUS_EXPORT Device {
 public:
  struct Impl;
  explicit Device(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  Device(const Device&) = default;
  Device& operator=(const Device&) = default;

  // Throws Error{kInvalidArgument} for an ill-formed name or an allocator with one function,
  // Error{kLibrary} without a driver, and Error{kDevice} if there is no such device. Without NVRTC
  // the log has a warning, and the device runs kernels that are found compiled
  // (DeviceInfo::compile_problem).
  static Device open(const DeviceOptions& options = {});
  static Device open(std::string_view name);

  const DeviceInfo& info() const;

  // Chooses a kernel, compiles or finds it, and uploads what the problem needs. Throws the errors
  // of validate(); Error{kInvalidArgument} for options out of their range; Error{kUnsupported} if
  // no configuration, or not the requested one, fits the device; Error{kCompile},
  // Error{kOutOfMemory} and Error{kDevice}; Error{kLibrary} if the driver is too old for this
  // NVRTC, or if a kernel is not found compiled and cannot be compiled; and Error{kLimit} and
  // Error{kCancelled}, after which a later call starts afresh.
  Plan plan(const Problem& problem, const PlanOptions& options = {}) const;

  // Makes a plan whose runs choose their blocks on the device. Tuned results are not used. PlanInfo
  // counts tiles and blocks of the problem's pattern, from which each run chooses. Also throws
  // Error{kUnsupported} if the pattern is a sum or has a blocks() leaf, and if PlanOptions::config
  // computes several heads in one CTA.
  Plan plan(const Problem& problem, const Selection& selection,
            const PlanOptions& options = {}) const;

  // Prepares what plan() needs for the problem: the kernel, the list of tiles, and the list's copy
  // on the device, which is made on a stream of the library. A later plan() finds them. It takes as
  // long as plan() without the copy, and is meant for a thread next to the computing one. All
  // lengths that fill the same tiles share one list. Throws the errors of plan().
  void prefetch(const Problem& problem, const PlanOptions& options = {}) const;

  // The memory that plan() would need now, without compiling and without using the device. Throws
  // the errors of plan() except kCompile and kDevice.
  MemoryNeeded memory_needed(const Problem& problem, const PlanOptions& options = {}) const;

  // Returns without waiting for the device.
  MemoryStatistics memory_statistics() const;
  // Drops lists that no plan holds, waits for released blocks, and returns memory to the allocator
  // until at most `bytes` are held or the rest is in use. Returns the number of bytes that were
  // returned. A call that runs out of memory does the same before it throws. Must not be called
  // while a stream is being captured.
  std::size_t trim(std::size_t bytes = 0) const;

  // Counters since the device was opened, for all copies of the object. Does not wait.
  Metrics metrics() const;

  // Adds what was planned since the last write to the file DeviceOptions::shape_log, and returns
  // when it is written. Without such a file it does nothing. Throws Error{kFile} if the file cannot
  // be written, and Error{kInvalidFile} if the existing file is not a log of shapes; the counts are
  // kept for the next write.
  void flush_shape_log() const;

  // Counters since the device was opened, for all copies of the object. Does not wait.
  ListCounters list_counters() const;

  // Memory and copies for programs without an allocator and streams. A copy waits until it is done
  // and is ordered after the work of the default stream. These functions throw Error{kOutOfMemory},
  // Error{kDevice}, Error{kInvalidArgument} for a copy from or to null, and Error{kFault} if an
  // earlier kernel faulted.
  DeviceMemory allocate(std::size_t bytes) const;
  void copy_to_device(void* to, const void* from, std::size_t bytes) const;
  void copy_to_host(void* to, const void* from, std::size_t bytes) const;
  void synchronize() const;

  // Returns a function of the driver that this device uses, real or simulated, so that a program
  // can make streams and events for run() without linking or opening a driver. The result is null
  // if the driver has no such function, and stays valid until the process ends. Names are symbols
  // of the library, to which cuda.h maps its names: "cuMemAlloc_v2", because in a real driver plain
  // "cuMemAlloc" is the function of CUDA 3.1. tools/simulator/docs/simulator.md lists the functions
  // of a simulated driver. The device's context is the primary context of info().ordinal; a thread
  // makes it current with cuDevicePrimaryCtxRetain and cuCtxSetCurrent. Throws nothing.
  //
  //   CUresult (*create)(CUstream*, unsigned) = nullptr;
  //   create = reinterpret_cast<decltype(create)>(device.driver_entry("cuStreamCreate"));
  void* driver_entry(const char* name) const;

  // Empty on a GPU. annulus/counters.def has the names and meanings.
  Counters counters(bool clear = false) const;
  // Changes how a simulated device runs later launches.
  void set_simulation(const SimulationOptions& options) const;

  const Impl& impl() const { return *impl_; }

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace annulus::inline v0

#endif  // ANNULUS_DEVICE_H_
