#ifndef ANNULUS_PLAN_H_
#define ANNULUS_PLAN_H_

// A plan is a problem made ready for a device. Device::plan (annulus/device.h) makes it, and its
// run() puts the work on a stream.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "annulus/observe.h"
#include "annulus/problem.h"

namespace annulus::inline v0 {

struct SelectionBuffers;  // annulus/selection.h

// When a plan that did not wait for its own kernel begins to use it (PlanOptions::wait).
enum class Swap : int {
  kWhenReady = 0,  // in the first run that begins after the kernel was compiled
  kWhenAsked = 1,  // in the first run after Plan::swap()
  kNever = 2,      // the plan keeps the general kernel, and nothing is compiled
};

// Which kernel the runs of a plan use.
enum class PlanState : int {
  kReady = 0,      // the plan's own kernel
  kCompiling = 1,  // a general kernel, while the plan's own is compiled
  kCompiled = 2,   // a general kernel until Plan::swap(), with Swap::kWhenAsked
  // A general kernel permanently: with Swap::kNever, or because the plan's own kernel could not be
  // obtained (Plan::why_general()). Only tuning can change it (PlanOptions::follow_tuning).
  kGeneral = 3,
};

struct PlanOptions {
  // The name of a kernel configuration, as `annulus explain` lists them. Empty: the configuration
  // of a tuned result for such a problem on this device, else the heuristic's choice. Kernels that
  // are withheld on a device, because they were found to fail there, run only if they are named
  // here; PlanInfo::decisions then has a note.
  std::string config;
  // How many multiprocessors the plan's kernels may occupy; 0: all. The others stay free for the
  // caller's kernels, such as a collective's. Only the wgmma family, which runs persistent CTAs,
  // keeps this limit; other families are planned as if the device had that number of
  // multiprocessors. If `config` names a configuration with clusters, at least one cluster runs,
  // even if it exceeds the limit.
  int max_multiprocessors = 0;
  // The strides of the operands of later runs, if they are known. Kernels that cannot take them are
  // not chosen, and PlanInfo::decisions has a note: the wgmma family copies by tensor maps, which
  // take neither a stride of 0 (K that is broadcast over heads) nor a negative one (CUDA driver
  // API, cuTensorMapEncodeTiled). Without `strides`, such a plan's runs refuse such operands.
  std::optional<OperandStrides> strides;
  // The number of parts into which the longest tile rows are split, so that several CTAs compute a
  // row in parallel (Dao et al., Flash-Decoding for long-context inference, 2023). Shorter rows are
  // split into parts of the same length. The states of the parts are stored in the workspace, and a
  // second launch, to which max_multiprocessors does not apply, combines them in the order of their
  // keys. So a plan gives the same bits in every run. Plans with different splits add in different
  // orders, and their O, LSE and state may differ in rounding. 0: the split that the pipe model
  // predicts to be fastest, which is usually no split; 1: no split. PlanInfo::decisions has the
  // choice and its reason. Error{kUnsupported} if the split could make more than 2^24 parts, and
  // for more than 1 in a ring or with a selection, which split no rows.
  int kv_splits = 0;
  // The most workspace bytes that a run may need; 0: no limit. A plan that needs more takes the
  // following steps until it fits, and PlanInfo::decisions names each of them. First a split that
  // the model chose becomes coarser, down to no split, which may change rounding; a split from
  // `kv_splits` stays. Then batches run in parts, one launch after another, which share the memory
  // for states of split rows and for the state between branches of a sum; this changes no bit. If a
  // single batch does not fit: Error{kOutOfMemory}, which names the bytes. Rings and plans with a
  // selection take no such steps and throw at once.
  std::int64_t max_workspace_bytes = 0;
  // Whether plan() waits until the plan's own kernel is compiled. If false and that kernel is not
  // in memory, the plan begins with a general kernel, which serves every pattern and every score
  // without an expression, and its own kernel is compiled on another thread
  // (DeviceOptions::executor). `swap` chooses when runs begin to use its own kernel. The two
  // kernels may have different tiles, so that O, LSE and state may differ in rounding before and
  // after the swap, and in no other way. The limit `work` holds for that compilation too, but its
  // cancel flag does not; destroying the plan cancels it. If no general kernel serves the problem
  // (a score expression, 8-bit elements, a selection), plan() waits and PlanInfo::waited has the
  // reason; with Swap::kNever it throws Error{kUnsupported}. Device::memory_needed,
  // Device::prefetch and rings ignore this option.
  bool wait = true;
  Swap swap = Swap::kWhenReady;
  // Whether the plan adopts better configurations that a BackgroundTuning (annulus/tune.h) finds
  // for such problems after the plan was made. The kernel of a better configuration is prepared on
  // another thread, and runs that begin later use it: at once with Swap::kWhenReady, or after
  // Plan::swap() with Swap::kWhenAsked (Plan::can_swap() is then true). O, LSE and state may differ
  // in rounding before and after, and in no other way. A configuration that needs more workspace
  // than the plan has is not adopted. Ignored with Swap::kNever, `config` or a selection.
  bool follow_tuning = false;
  // Called once if plan() did not wait, when its own kernel is compiled or has failed, with the new
  // state and Plan::why_general(), on the thread that compiled. It must not throw. It is not called
  // if the plan is already destroyed or the process has begun to exit.
  std::function<void(PlanState, const std::string&)> on_ready;
  // The size of the blocks for PlanInfo::block_density; 0: the size of the kernel's tile.
  std::int64_t block_rows = 0;
  std::int64_t block_columns = 0;
  // Limits the host's work of planning. The length of a mask's or score's text counts for NVRTC's
  // time, even if the kernel is in a cache. PlanInfo::work_steps has the steps that a plan took.
  WorkLimit work = {};
};

// The memory that a plan would need.
struct MemoryNeeded {
  std::int64_t device_bytes = 0;  // bytes that the plan would hold; PlanInfo::device_bytes
  std::int64_t shared_bytes = 0;  // the part of them in lists that are already on the device
  std::int64_t workspace_bytes = 0;
};

// The decisions of planning, for people and for logs.
struct PlanInfo {
  std::string kernel;  // the family
  std::string config;  // the name for PlanOptions::config
  std::string source;  // origin of the kernel: "memory", "disk" or "compiled"; "none" if the plan
                       // launches nothing
  // The file of the tuned result that has the configuration, or "memory" if the result is in no
  // file. Empty if the heuristic or the caller chose the configuration.
  std::string tuned;
  double plan_ms = 0;                  // time to decide
  double compile_ms = 0;               // time to find or compile the kernel and to upload the lists
  std::vector<std::string> decisions;  // one line each
  std::vector<std::string> rejected;   // the other configurations, each with a reason
  std::string specialised_source;      // the compiled source, for each branch of a sum
  int launches = 0;                    // launches of all branches
  std::int64_t ctas = 0;
  int tile_rows = 0;                  // M: queries of a CTA
  int tile_columns = 0;               // N: keys of a step
  int threads = 0;                    // threads of a CTA
  std::int64_t shared_bytes = 0;      // shared memory of a CTA
  int registers = 0;                  // registers of a thread; an estimate on a simulated device
  int local_bytes = 0;                // local memory of a thread: spills
  int blocks_per_multiprocessor = 0;  // CTAs that fit at a time
  std::int64_t full_tiles = 0;        // tiles in all distinct lists
  std::int64_t partial_tiles = 0;
  // The share of the blocks of PlanOptions::block_rows x block_columns that are kept. The shares of
  // the branches of a sum are added and may exceed 1.
  Density block_density;
  std::int64_t device_bytes = 0;  // memory that the plan holds
  std::int64_t work_steps = 0;    // steps of planning, in the unit of PlanOptions::work
  bool general = false;           // `kernel` is a general kernel
  std::string waited;             // why plan() waited in spite of PlanOptions::wait, or empty
};

// The time of a run as the pipe model (docs/tuning.md) predicts it from the plan and the device's
// data sheet, without running it. docs/performance.md compares predictions with times of an H200.
struct PlanPrediction {
  double predicted_micros = 0;  // infinite if not even one CTA fits
  // The range of the time if each constant of the model is anywhere in its own interval
  // (docs/performance.md lists the intervals).
  double min_micros = 0;
  double max_micros = 0;
  std::string predicted_limit;  // the bottleneck: "tensor cores", "special functions", ...
  // The share of the time in which each pipe is busy, on an average multiprocessor.
  std::vector<std::pair<std::string, double>> predicted_busy;
};

// A plan with its operands: the checks and preparations of run() are done once, when the call is
// bound. A model that runs its layers on the same memory binds each layer once:
//
//   std::vector<BoundCall> layers;
//   for (const Operands& each : operands) layers.push_back(plan.bind(each, workspace));
//   for (const BoundCall& layer : layers) layer.run(stream);
//
// A bound call is immutable, copies share it, and it keeps the plan alive. It holds addresses, not
// memory: what the operands, the workspace and the selection's buffers point to must stay at the
// same addresses until the last run has ended. Contents may change between runs in stream order.
class ANNULUS_EXPORT BoundCall {
 public:
  struct Impl;
  explicit BoundCall(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  BoundCall(const BoundCall&) = default;
  BoundCall& operator=(const BoundCall&) = default;

  // Puts the work on `stream`, as Plan::run does, and returns. It only launches: it checks nothing,
  // allocates nothing, takes no lock and does not wait, and it may be captured in a graph. The
  // result has the bits of Plan::run. Any thread may call it at any time, on any stream of the
  // device's context. Two runs write the same O and use the same workspace, so a stream or an event
  // must order them. Throws Error{kDevice} if the driver refuses a launch; earlier launches stay
  // queued.
  void run(void* stream) const;

 private:
  std::shared_ptr<const Impl> impl_;
};

// A problem made ready for a device. A plan is immutable, and any number of threads may run it at a
// time. Copies share it, and it keeps what it needs of the device alive.
class ANNULUS_EXPORT Plan {
 public:
  struct Impl;
  explicit Plan(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  Plan(const Plan&) = default;
  Plan& operator=(const Plan&) = default;

  const Problem& problem() const;
  // Describes the kernel that runs use now. The reference is valid as long as the plan, even if
  // later runs use another kernel.
  const PlanInfo& info() const;

  // Which kernel a run that begins now uses. It changes only if the plan did not wait for its
  // kernel (PlanOptions::wait); any other plan is kReady. Bound calls and captured graphs keep the
  // kernel with which they were made.
  PlanState state() const;
  bool ready() const { return state() == PlanState::kReady; }
  // Why the plan's own kernel could not be obtained; empty if it was or still may be.
  std::string why_general() const;
  // Waits until the state is not kCompiling, for at most `seconds`, or without limit if negative.
  // Returns false if the time ran out.
  bool wait(double seconds = -1) const;
  // Lets runs that begin later use the plan's own kernel (Swap::kWhenAsked) or a better one
  // (PlanOptions::follow_tuning). Does nothing if runs use it already or if there is none. Throws
  // Error{kInvalidArgument} while its own kernel is being compiled.
  void swap() const;
  // Returns whether swap() would change the kernel.
  bool can_swap() const;

  // Computes the prediction in each call, which takes milliseconds for many tile rows.
  PlanPrediction predict() const;

  // Times of the timed runs that have ended (DeviceOptions::time_every_nth_run).
  RunTimes times() const;

  // Bytes of scratch device memory that a run needs, 16-byte aligned; may be 0. The memory may hold
  // anything before a run, including the rest of an aborted run, and need not be kept between runs.
  // Two runs that may execute at the same time need separate workspaces, whether they are runs of
  // one plan or two, on two streams or as replays of captured graphs; the instances of one graph
  // share its workspace. If such runs share a workspace, both results are undefined, and only the
  // checked mode of a simulated device reports it, as unordered writes. Runs that a stream or an
  // event orders, and replays of one executable graph, may share a workspace.
  std::size_t workspace_bytes() const;

  // Puts the work on `stream` (a CUstream of the device's context; null is the default stream) and
  // returns. It allocates nothing, takes no lock and does not wait. Throws Error{kInvalidArgument}
  // for operands that validate() refuses and for a missing or misaligned workspace,
  // Error{kUnsupported} for strides that the plan's kernel cannot take (PlanOptions::strides), and
  // Error{kDevice} if the driver refuses the launch. If it throws, nothing was launched. An error
  // inside a kernel shows at the next wait.
  void run(void* stream, const Operands& operands, void* workspace = nullptr) const;

  // Runs a plan with a selection (annulus/selection.h) with buffers in addition to the operands.
  // Throws Error{kInvalidArgument} if the plan has no selection.
  void run(void* stream, const Operands& operands, void* workspace,
           const SelectionBuffers& buffers) const;

  // Checks operands and workspace and prepares their launches, including tensor maps, once for all
  // runs of the result. Launches nothing. Any plan can be bound; a plan with a selection still
  // chooses its blocks in each run. Throws the errors that run() throws before it launches. Takes
  // microseconds and allocates host memory.
  BoundCall bind(const Operands& operands, void* workspace = nullptr) const;
  BoundCall bind(const Operands& operands, void* workspace, const SelectionBuffers& buffers) const;

 private:
  std::shared_ptr<const Impl> impl_;
};

}  // namespace annulus::inline v0

#endif  // ANNULUS_PLAN_H_
