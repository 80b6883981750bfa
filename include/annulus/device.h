#ifndef ANNULUS_DEVICE_H_
#define ANNULUS_DEVICE_H_

// Device memory from the caller's own pool. All device memory that the library needs for a device
// (the lists of a plan, what a ring keeps, DeviceMemory) comes from these two functions where they
// are given, and from cuMemAlloc where they are not. The library asks for slabs of 2 MiB and more,
// cuts them itself (Device::memory_statistics) and keeps them; where a slab is refused it asks for
// no more than it needs. Running a plan allocates nothing.

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

// Either both functions are set or neither. They are called on the thread that called the library,
// or that compiles for a plan which does not wait (PlanOptions::wait), perhaps on several at a
// time, with the device's context current. What they use must stay until the device, its plans and
// its memory are gone. They must not call the library with the same device.
struct AllocatorCallbacks {
  // Returns `bytes` > 0 bytes of device memory at a multiple of `alignment` (256), which every
  // stream of the device's primary context may use at once: no work that is still pending reads or
  // writes them. A null result, and any exception but Error, make the call that needed the memory
  // throw Error{kOutOfMemory}; an Error is passed on.
  std::function<void*(std::size_t bytes, std::size_t alignment)> allocate;
  // Takes back memory that allocate gave, with the same size. All work that used it has ended, so
  // the pool may hand it out at once. Called when the device and its plans are gone, by
  // Device::trim, when memory runs out, and where over 64 MiB are empty. An exception is ignored:
  // destructors call this.
  std::function<void(void* address, std::size_t bytes)> release;
};

// Opening a device, planning a problem on it, and running the plan:
//
//   Device device = Device::open();                 // the first GPU, else a simulated one
//   Plan plan = device.plan(problem);               // chooses and compiles; may take a second
//   plan.run(stream, operands, workspace);          // asynchronous, allocates nothing
//
// A simulated device behaves like a GPU and runs the same kernels. Its memory is host memory, and
// its times say nothing about a GPU.

enum class LogLevel : int { kError = 0, kWarning = 1, kInfo = 2, kDebug = 3 };
// Called from any thread, perhaps from several at a time, inside a call of the library or on a
// thread of its own. Its exceptions are dropped, because a note never makes the call fail that it
// is about. It must not call the library with the same device.
using LogCallback = std::function<void(LogLevel, std::string_view)>;

// How a simulated device runs; a real one ignores it.
struct SimulationOptions {
  bool checked = true;     // find races, uninitialised reads and lost copies; fast mode finds none
  std::uint64_t seed = 0;  // decides the order of warps and when asynchronous copies land
  std::uint32_t threads = 0;  // host threads, up to 1024; 0: one per processor
};

// Which kernels a device compiles.
enum class Compile : int {
  kDefault = 0,  // as ANNULUS_COMPILE says, "missing" or "never"; where it is not set, kMissing
  kMissing = 1,  // those that are not there compiled
  // None: a plan whose kernels are not there throws Error{kLibrary}, which names what is missing.
  // NVRTC is not even opened, so it is as on a machine that has none.
  kNever = 2,
};

struct DeviceOptions {
  // "cuda:N", "sim:sm_80", "sim:sm_90a", "sim:sm_90a:N", or "cuda": the first GPU, and an error
  // where there is none. Empty: ANNULUS_DEVICE; where that is not set either, the first GPU, else
  // the newest simulated architecture, with a warning in the log, because it is slower by orders of
  // magnitude. With ANNULUS_REQUIRE_GPU=1 in the environment that is an error instead, as is a
  // simulated device by name.
  std::string name;
  // Folder of compiled kernels. Not given: ANNULUS_CACHE_DIR, else the user's cache folder. Empty:
  // nothing is kept on disk.
  std::optional<std::string> cache_dir;
  // Where kernels are looked for that were compiled ahead (annulus/kernels.h), ':' between folders;
  // then in annulus/kernels beside libannulus.so. These folders are only read. Not given:
  // ANNULUS_KERNELS, where "none" means an empty text. Empty: nowhere, not even beside the library.
  std::optional<std::string> kernels_path;
  Compile compile = Compile::kDefault;
  // Where tuned results are looked for, ':' between folders and packs (names that end in ".pack");
  // behind them those that were installed with the library. New results go to the first folder that
  // can be written to (annulus/tune.h). Not given: ANNULUS_TUNED, else a folder of the user's
  // cache. Empty: none are read, and new ones are kept in memory only.
  std::optional<std::string> tuned_path;
  // A folder of kernel templates to use instead of the built-in ones, for work on them.
  std::string template_dir;
  LogCallback log;
  LogLevel log_level = LogLevel::kWarning;
  AllocatorCallbacks allocator;  // for device memory; not set: the driver's
  // The most device memory that the library may hold at a time, Device::allocate included; 0: no
  // limit. What needs more throws Error{kOutOfMemory}, after all that nobody uses was given back.
  std::int64_t max_device_bytes = 0;
  // Limits of the caches of tile lists that plans share, in host memory and in device memory. A
  // list that is dropped stays as long as a plan holds it. With 0 entries each plan has its own
  // list.
  LayoutCacheLimits host_lists;
  LayoutCacheLimits device_lists;
  SimulationOptions simulation;
  // For debugging: each run asks the driver of every operand and of the workspace whether it is
  // memory that the device can read (cuPointerGetAttribute), and throws Error{kInvalidArgument}
  // where it is not. Without it, a pointer to the host's stack or heap is a fault of the kernel,
  // which loses the context. Costs some microseconds for each run.
  bool check_operands = false;
  // Each n-th run of a plan or a bound call is timed on the device, by an event before it and one
  // behind it; 0: none. A timed run takes a lock for a moment and some microseconds. Runs of a ring
  // are not timed. Nor are runs under capture, and runs while 64 wait for the device already;
  // Metrics::untimed_runs counts these.
  std::int64_t time_every_nth_run = 0;
  // Where kernels of plans that do not wait are compiled: called with a task, which the host calls
  // once, from any thread, now or later; it takes up to seconds. A task that is destroyed without
  // having been called counts as refused, and its plan keeps a general kernel, as it does where the
  // executor throws. Not set: on threads of the library's own, at most four of the process.
  std::function<void(std::function<void()> task)> executor;
  // Loads all general kernels of the architecture (docs/embedding.md#plans-that-do-not-wait) beside
  // the caller, once the device is open, so that no plan waits for one: those that were compiled
  // ahead are read, others are compiled first. Without it the first plan of each head dim and dtype
  // that does not wait loads its own.
  bool load_general_kernels = false;
  // A file in which the device counts the problems and batches that it plans, by the lines that
  // `annulus tune --shapes` and `annulus warm --shapes` read (docs/tuning.md#what-an-engine-plans);
  // empty: none. An absolute path. The file is written beside the callers, at most once in a second
  // and at least once in a minute while there is something new, and at the device's end; planning
  // waits for no file. Several devices and processes may name one file, which then has what all of
  // them planned. A file that cannot be written costs one line in the log. A ring has the line of
  // its step, and a batch that of its bounds, whatever its steps are. Plans with a selection and
  // layouts that came from no file have none, and are counted as left out.
  std::string shape_log;
};

// The counts that a simulated device has made since the last clear, by name in a fixed order.
using Counters = std::vector<std::pair<std::string, std::uint64_t>>;

struct DeviceInfo {
  std::string name;          // as Device::open takes it
  std::string description;   // what the driver calls it
  std::string architecture;  // "sm_80", "sm_90a", ...
  bool simulated = false;
  int multiprocessors = 0;
  std::int64_t shared_bytes_per_block = 0;  // the most a kernel can have
  std::int64_t memory_bytes = 0;
  int ordinal = 0;            // the driver's number for the device, as cuDeviceGet takes it
  int driver_version = 0;     // 13000 is 13.0
  std::string nvrtc_version;  // "13.0"; empty where NVRTC was not opened
  // Why no kernel can be compiled: NVRTC is missing or unfit, or DeviceOptions::compile says so.
  // Plans whose kernels are on disk work all the same. Empty where kernels can be compiled.
  std::string compile_problem;
  // Where kernels compiled ahead are looked for, ':' between folders, those of the library
  // included.
  std::string kernels_path;
  std::string cache_dir;      // empty: nothing is kept on disk
  std::string cache_problem;  // why not, where it was asked for
  std::string tuned_path;     // where tuned results are looked for
  // What a tuned result says of its device (TunedEntry::device) where it was found on this one: the
  // chip, and whether it was measured.
  std::string tuned_key;
  // What compiled kernels on disk are of that serve this device (KernelSet::origin): architecture,
  // NVRTC and the digest of the sources. In folders of kernels compiled ahead, and where no kernel
  // can be compiled, those of any NVRTC serve it (why_unused in annulus/kernels.h).
  std::string kernel_origin;
};

// Counts of the lists of tiles that plans asked for: `host` for lists that are made, `device` for
// lists that are uploaded. Plans whose kernels compute their tiles need no list.
struct ListCounters {
  LayoutCacheCounters host;
  LayoutCacheCounters device;
};

// The device memory that the library holds. It takes slabs from the allocator and cuts them into
// blocks; a block that was given back waits until no work can use it any more.
struct MemoryStatistics {
  std::int64_t held_bytes = 0;     // all slabs
  std::int64_t used_bytes = 0;     // blocks in use
  std::int64_t waiting_bytes = 0;  // blocks that were given back and wait
  std::int64_t peak_held_bytes = 0;
  std::int64_t peak_used_bytes = 0;
  std::int64_t largest_free_bytes = 0;  // the largest free block
  std::int64_t slabs = 0;
  std::int64_t blocks = 0;  // in use
  // Calls of the allocator since the device was opened.
  std::int64_t slabs_taken = 0;
  std::int64_t slabs_given_back = 0;
  // What the blocks in use are for; together used_bytes.
  std::int64_t lists_bytes = 0;      // lists of tiles, in plans and in the cache
  std::int64_t tables_bytes = 0;     // what else plans read
  std::int64_t selection_bytes = 0;  // bits of selections
  std::int64_t caller_bytes = 0;     // Device::allocate
  std::int64_t scratch_bytes = 0;    // of calls that run now, such as tune()
};

// Owns device memory. Its destructor gives the memory back to the device it came from and does not
// wait. Work of that device which was queued before may still use it; the library hands it out
// again, or gives it back to the allocator, when that has ended.
class ANNULUS_EXPORT DeviceMemory {
 public:
  struct Impl;
  DeviceMemory();
  explicit DeviceMemory(std::unique_ptr<Impl> impl);
  DeviceMemory(DeviceMemory&&) noexcept;
  DeviceMemory& operator=(DeviceMemory&&) noexcept;
  ~DeviceMemory();

  void* data() const;  // null where bytes() is 0
  std::size_t bytes() const;

 private:
  std::unique_ptr<Impl> impl_;
};

// An opened device. It may be used from several threads, and copies share it.
class ANNULUS_EXPORT Device {
 public:
  struct Impl;
  explicit Device(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  // No move, as for Plan.
  Device(const Device&) = default;
  Device& operator=(const Device&) = default;

  // Throws Error{kInvalidArgument} for a name of another form or half an allocator, Error{kLibrary}
  // without a driver, Error{kDevice} where there is no such device. Without NVRTC it writes one
  // warning to the log, and the device runs what is there compiled (DeviceInfo::compile_problem).
  static Device open(const DeviceOptions& options = {});
  static Device open(std::string_view name);

  const DeviceInfo& info() const;

  // Chooses a kernel, compiles or finds it, and uploads what the problem needs. Throws what
  // validate() throws, Error{kInvalidArgument} for options out of their range, Error{kUnsupported}
  // where no configuration fits the device or the one asked for does not, Error{kCompile}, Error{
  // kOutOfMemory}, Error{kDevice}, Error{kLibrary} where the driver is too old for this NVRTC or a
  // kernel is not there and cannot be compiled, and Error{kLimit, kCancelled}, after which a later
  // call begins anew.
  Plan plan(const Problem& problem, const PlanOptions& options = {}) const;

  // Plans for blocks that each run chooses on the device. Tuned results are not looked up; PlanInfo
  // counts tiles and blocks of the problem's pattern, from which a run takes its own. Throws also
  // Error{kUnsupported} where the pattern is a sum or has blocks() of its own, and where
  // PlanOptions::config computes several heads in one CTA.
  Plan plan(const Problem& problem, const Selection& selection,
            const PlanOptions& options = {}) const;

  // Makes what plan() will need for such a problem and leaves it where plan() finds it: the kernel,
  // the list of tiles, and the list's copy on the device, which is made on a stream of the
  // library's own. It takes as long as plan() without that copy, and is meant for a thread beside
  // the one that computes. All lengths that fill the same tiles share one list. Throws as plan().
  void prefetch(const Problem& problem, const PlanOptions& options = {}) const;

  // The memory that plan() would need now, without compiling and without touching the device.
  // Throws as plan(), but for kCompile and kDevice.
  MemoryNeeded memory_needed(const Problem& problem, const PlanOptions& options = {}) const;

  // Does not wait.
  MemoryStatistics memory_statistics() const;
  // Drops lists that no plan holds, waits for blocks that were given back, and gives memory back to
  // the allocator until at most `bytes` are held or the rest is in use. Returns the bytes that were
  // given back. A call that runs out of memory does the same by itself before it throws. It must
  // not be called while a stream is being captured.
  std::size_t trim(std::size_t bytes = 0) const;

  // All that was counted since the device was opened, over all its copies. Does not wait.
  Metrics metrics() const;

  // Adds what was planned since it last was to the file of DeviceOptions::shape_log, and returns
  // when it is there; does nothing without such a file. Throws Error{kFile} where it cannot be
  // written, and Error{kInvalidFile} where it is there and is no log of shapes; what was counted is
  // kept for the next time.
  void flush_shape_log() const;

  // Counts since the device was opened, over all its copies. Does not wait.
  ListCounters list_counters() const;

  // For programs that have no allocator and no streams of their own. Copies wait until they are
  // done and are ordered after the work of the default stream. Throw Error{kOutOfMemory, kDevice};
  // Error{kInvalidArgument} for a copy from or to null; Error{kFault} where an earlier kernel
  // faulted.
  DeviceMemory allocate(std::size_t bytes) const;
  void copy_to_device(void* to, const void* from, std::size_t bytes) const;
  void copy_to_host(void* to, const void* from, std::size_t bytes) const;
  void synchronize() const;

  // The function of the driver with this name, to make streams and events for run() with: the
  // driver that this device uses, real or simulated, without linking or opening another. The
  // device's context is the primary one of info().ordinal, so a thread makes it current with
  // cuDevicePrimaryCtxRetain and cuCtxSetCurrent. Names are those of the library's symbols, to
  // which cuda.h maps its own: "cuMemAlloc_v2", for plain "cuMemAlloc" is the function of CUDA 3.1
  // in a real driver. A simulated driver has all those that tools/simulator/docs/simulator.md
  // lists. The result is null where there is no such function. Stays valid until the process ends.
  // Throws nothing.
  //
  //   CUresult (*create)(CUstream*, unsigned) = nullptr;
  //   create = reinterpret_cast<decltype(create)>(device.driver_entry("cuStreamCreate"));
  void* driver_entry(const char* name) const;

  // Empty on a real device. Names and meanings are those of annulus/counters.def.
  Counters counters(bool clear = false) const;
  // Changes how a simulated device runs what is launched from now on.
  void set_simulation(const SimulationOptions& options) const;

  const Impl& impl() const { return *impl_; }

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace annulus::inline v0

#endif  // ANNULUS_DEVICE_H_
