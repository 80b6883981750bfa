#ifndef ANNULUS_DEVICE_H_
#define ANNULUS_DEVICE_H_

// Opening a device, planning a problem on it, and running the plan:
//
//   Device device = Device::open();                 // the first GPU, else a simulated one
//   Plan plan = device.plan(problem);               // chooses and compiles; may take a second
//   plan.run(stream, operands, workspace);          // asynchronous, allocates nothing
//
// A simulated device behaves like a GPU and runs the same kernels. Its memory is host memory, and
// its times say nothing about a GPU.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "annulus/allocator.h"
#include "annulus/attention.h"
#include "annulus/layout_cache.h"
#include "annulus/metrics.h"
#include "annulus/selection.h"

namespace annulus::inline v0 {

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

// When a plan that did not wait for its kernel begins to run it (PlanOptions::wait).
enum class Swap : int {
  kWhenReady = 0,  // with the first run that begins after it was compiled
  kWhenAsked = 1,  // with the first run after Plan::swap()
  kNever = 2,      // never: the plan keeps the general kernel, and nothing is compiled
};

// Which kernel a plan runs.
enum class PlanState : int {
  kReady = 0,      // its own
  kCompiling = 1,  // a general one; its own is being compiled
  kCompiled = 2,   // a general one until Plan::swap(), with Swap::kWhenAsked
  // A general one: with Swap::kNever, or as its own could not be had, which Plan::why_general()
  // explains. It is for good, unless tuning brings a better one to a plan that follows it
  // (PlanOptions::follow_tuning).
  kGeneral = 3,
};

struct PlanOptions {
  // The name of a kernel configuration, as `annulus explain` lists them. Empty: the tuned one where
  // there is a tuned result for such a problem on this device, else the heuristic's. Only a named
  // one may be of a kernel that is withheld on the device because it was found to fail there;
  // PlanInfo::decisions then says so.
  std::string config;
  // How many multiprocessors the plan's kernels may occupy; 0: all. The others are left to the
  // caller's own kernels, for example those of a collective. Only kernels of the wgmma family,
  // which run persistent CTAs, keep to it; kernels of other families are merely planned as if the
  // device had so many. If `config` names a configuration with clusters, at least one cluster runs
  // even where this limit is smaller.
  int max_multiprocessors = 0;
  // The strides that the operands of runs will have, where they are known by now. A kernel that
  // cannot take them is passed over, and PlanInfo::decisions says so: the tensor maps by which the
  // wgmma family copies take no stride of 0 (K that is broadcast over heads) and no negative one
  // (CUDA driver API, cuTensorMapEncodeTiled). Where strides are not given, a plan of that family
  // refuses such operands when it runs.
  std::optional<OperandStrides> strides;
  // Into how many parts the longest tile rows are split, so that several CTAs compute them side by
  // side (Dao et al., Flash-Decoding for long-context inference, 2023); shorter rows are split into
  // parts of the same length. The parts' states go through the workspace, and a second launch, to
  // which max_multiprocessors does not apply, combines them in the order of their keys. So the same
  // plan gives the same bits in every run, whichever part is done first; plans with different
  // splits add in different orders, and their O, LSE and state may differ in rounding. 0: the split
  // that the pipe model predicts to be fastest, which is mostly none; 1: no split.
  // PlanInfo::decisions says what was done and why. A ring and a plan with a selection split no
  // rows: Error{kUnsupported} for more than 1 there, and elsewhere where it could make over 2^24
  // parts.
  int kv_splits = 0;
  // The most workspace that a run may need; 0: no limit. A plan that needs more takes these steps,
  // one after another, until it fits, and PlanInfo::decisions names each: the split that the model
  // chose becomes coarser, to the point of no split, while one that was asked for stays; then
  // batches run in parts, one launch after another, which share the states of split rows and the
  // state between the branches of a sum. A coarser split may change rounding, batches in parts
  // change no bit. Where one batch does not fit either: Error{kOutOfMemory}, which names the bytes.
  // A plan with a selection and a ring have no such steps, only the error.
  std::int64_t max_workspace_bytes = 0;
  // Whether plan() waits until the plan's own kernel is compiled. If false, and that kernel is not
  // in memory, the plan runs a general kernel at first, which serves every pattern and every score
  // without an expression, and its own is compiled beside the caller (DeviceOptions::executor). The
  // two may have different tiles, so that O, LSE and state may differ in rounding between runs
  // before and after the swap, and in no other way; `swap` says when that is, or forbids it. The
  // limit of work holds for the compilation as well, the flag of it does not: a plan that is
  // destroyed ends it. Where no general kernel serves the problem (a score expression, 8-bit
  // elements, a selection), plan() waits, and PlanInfo::waited says why; with Swap::kNever it
  // throws Error{kUnsupported}. Device::memory_needed, Device::prefetch and rings do not look at
  // it.
  bool wait = true;
  Swap swap = Swap::kWhenReady;
  // Whether the plan learns of tuned results that a BackgroundTuning (annulus/tune.h) finds for
  // problems like its own once it is made. The kernel of a better configuration is then made ready
  // beside the caller, and runs that begin later use it: with Swap::kWhenReady at once, with
  // Swap::kWhenAsked after Plan::swap(); Plan::can_swap() says that there is one. O, LSE and state
  // may differ in rounding between runs before and after that, and in no other way. A result whose
  // plan would need more workspace is not taken. Without effect with Swap::kNever, with `config`
  // and with a selection.
  bool follow_tuning = false;
  // Called once, where plan() did not wait, when the own kernel is compiled or could not be, with
  // the new state and Plan::why_general(); on the thread that compiled it. It must not throw, and
  // is not called for a plan that is destroyed by then, or once the process has begun to end.
  std::function<void(PlanState, const std::string&)> on_ready;
  // Granularity at which PlanInfo::block_density is counted; 0: the compute tile's.
  std::int64_t block_rows = 0;
  std::int64_t block_columns = 0;
  // What planning may do on the host. The text of a mask or a score counts for what NVRTC takes to
  // compile it, also where its kernel is in a cache. PlanInfo::work_steps tells what a plan took.
  WorkLimit work = {};
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

// The memory that a plan would need.
struct MemoryNeeded {
  std::int64_t device_bytes = 0;  // that the plan would hold; PlanInfo::device_bytes
  std::int64_t shared_bytes = 0;  // of these, lists that are on the device by now
  std::int64_t workspace_bytes = 0;
};

// Everything that was decided, for people and for logs.
struct PlanInfo {
  std::string kernel;  // the family
  std::string config;  // as PlanOptions::config takes it
  std::string source;  // where the kernel came from: "memory", "disk", "compiled"; "none" where
                       // there is nothing to launch
  // The file of the tuned result whose configuration it is, "memory" where that is in no file;
  // empty where the configuration is the heuristic's or the caller's.
  std::string tuned;
  double plan_ms = 0;     // time to decide
  double compile_ms = 0;  // time to get the kernel, whatever its source, and upload the lists
  std::vector<std::string> decisions;  // one line each
  std::vector<std::string> rejected;   // the other configurations, each with a reason
  std::string specialised_source;      // what the compiler was given, for each branch of a sum
  int launches = 0;                    // of all branches
  std::int64_t ctas = 0;
  int tile_rows = 0;                  // M: queries of a CTA
  int tile_columns = 0;               // N: keys of a step
  int threads = 0;                    // of a CTA
  std::int64_t shared_bytes = 0;      // of a CTA
  int registers = 0;                  // of a thread; on a simulated device an estimate
  int local_bytes = 0;                // of a thread: spills
  int blocks_per_multiprocessor = 0;  // CTAs that fit at a time
  std::int64_t full_tiles = 0;        // in all distinct lists
  std::int64_t partial_tiles = 0;
  // The share of the blocks of PlanOptions::block_rows x block_columns that are kept. For a sum it
  // is added over all branches and may be more than 1.
  Density block_density;
  std::int64_t device_bytes = 0;  // memory that the plan holds
  std::int64_t work_steps = 0;    // what planning took, as PlanOptions::work counts it
  bool general = false;           // `kernel` is a general one
  std::string waited;             // why plan() waited although it was told not to; else empty
};

// How long the pipe model (docs/tuning.md) predicts a run to take, from the plan and the data sheet
// of its device, without running it. docs/performance.md compares predictions with times of an
// H200.
struct PlanPrediction {
  double predicted_micros = 0;  // infinite where not one CTA fits
  // The range in which the time lies if each constant of the model lies in its own interval
  // (docs/performance.md lists them).
  double least_micros = 0;
  double most_micros = 0;
  std::string predicted_limit;  // what it is bound by: "tensor cores", "special functions", ...
  // Each pipe's share of that time in which it works, on an average multiprocessor.
  std::vector<std::pair<std::string, double>> predicted_busy;
};

// A plan with its operands: the checks and preparations of run() are done once, when it is made. A
// model that runs the same layers again and again on the same memory makes one for each layer:
//
//   std::vector<BoundCall> layers;
//   for (const Operands& each : operands) layers.push_back(plan.bind(each, workspace));
//   for (const BoundCall& layer : layers) layer.run(stream);
//
// It is immutable, copies share it, and it keeps the plan alive. It holds addresses, not memory:
// what the operands, the workspace and the selection's buffers point to must stay, at the same
// addresses, until the last run has ended on its stream. Contents may change between runs, as
// streams order it.
class ANNULUS_EXPORT BoundCall {
 public:
  struct Impl;
  explicit BoundCall(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  // No move: a call that was moved from would be none. A copy is a pointer.
  BoundCall(const BoundCall&) = default;
  BoundCall& operator=(const BoundCall&) = default;

  // Puts the work on `stream`, as Plan::run does, and returns. It only launches: it checks nothing,
  // allocates nothing, takes no lock and does not wait, and it may be captured in a graph. The
  // answer has the bits of Plan::run. Any thread may call it at any time, on any stream of the
  // device's context; two runs write the same O and use the same workspace, so a stream or an event
  // must order them. Throws Error{kDevice} where the driver refuses a launch; the launches before
  // it are queued then.
  void run(void* stream) const;

 private:
  std::shared_ptr<const Impl> impl_;
};

// A problem made ready for a device. Immutable: any number of threads may run it at a time. Copies
// share. Keeps what it needs of the device alive.
class ANNULUS_EXPORT Plan {
 public:
  struct Impl;
  explicit Plan(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  // No move: a plan that was moved from would be none. A copy is a pointer.
  Plan(const Plan&) = default;
  Plan& operator=(const Plan&) = default;

  const Problem& problem() const;
  // What is known of the kernel that runs use now. It stays as long as the plan, also where runs
  // use another kernel later.
  const PlanInfo& info() const;

  // Says which kernel runs use that begin now. It changes only where a plan did not wait for its
  // kernel (PlanOptions::wait); any other plan is kReady. Bound calls and captured graphs keep the
  // kernel that they were made with.
  PlanState state() const;
  bool ready() const { return state() == PlanState::kReady; }
  // Why its own kernel could not be had; empty where it could, or may still.
  std::string why_general() const;
  // Waits until the state is no longer kCompiling, at most so many seconds; negative: for as long
  // as it takes. False where the time was over.
  bool wait(double seconds = -1) const;
  // Lets runs that begin from now on use the own kernel, with Swap::kWhenAsked, or the better one
  // that PlanOptions::follow_tuning has brought. Does nothing where they do already, or where there
  // is none. Throws Error{kInvalidArgument} while the own kernel is compiled.
  void swap() const;
  // Whether swap() would change the kernel.
  bool can_swap() const;

  // Computed anew in each call; takes milliseconds where there are many tile rows.
  PlanPrediction predict() const;

  // How long its timed runs took, as far as they have ended (DeviceOptions::time_every_nth_run).
  RunTimes times() const;

  // Scratch memory that a run needs, 16-byte aligned. May be 0. A run sets what it needs there
  // itself: the memory may hold anything, also what an aborted run has left, and nothing in it has
  // to stay between runs. Two runs that may be under way at a time need a workspace each, be they
  // of one plan or of two, on two streams or as replays of captured graphs: one graph that is
  // instantiated twice has one workspace. Nothing checks that: runs that share one take each
  // other's work, so that both answers are undefined. Only the checked mode of a simulated device
  // reports it, as unordered writes. Runs that a stream or an event puts one behind the other, and
  // replays of one executable graph, may share a workspace.
  std::size_t workspace_bytes() const;

  // Puts the work on `stream` (a CUstream of the device's context; null is the default stream) and
  // returns. It allocates nothing, takes no lock and does not wait. Throws Error{kInvalidArgument}
  // for operands that validate() refuses and for a workspace that is missing or not aligned,
  // Error{kUnsupported} for strides that the plan's kernel cannot take (see PlanOptions::strides)
  // and Error{kDevice} where the driver refuses the launch; nothing was launched then. An error
  // inside a kernel shows at the next wait.
  void run(void* stream, const Operands& operands, void* workspace = nullptr) const;

  // Runs a plan with a selection (annulus/selection.h) that reads or writes more than the operands.
  // Throws Error{kInvalidArgument} for a plan without one.
  void run(void* stream, const Operands& operands, void* workspace,
           const SelectionBuffers& buffers) const;

  // Checks operands and workspace and prepares their launches, tensor maps included, once for all
  // runs of what is returned; launches nothing. It works for every plan, also of a sum, with split
  // rows, and with a selection, whose blocks are chosen anew in each run. Throws what run() throws
  // for them, before it launches. Takes microseconds and allocates host memory.
  BoundCall bind(const Operands& operands, void* workspace = nullptr) const;
  BoundCall bind(const Operands& operands, void* workspace, const SelectionBuffers& buffers) const;

 private:
  std::shared_ptr<const Impl> impl_;
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
