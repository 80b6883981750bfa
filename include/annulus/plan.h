#ifndef ANNULUS_PLAN_H_
#define ANNULUS_PLAN_H_

// A plan: a problem made ready for a device, and its runs. Device::plan (annulus/device.h) makes
// it.

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

}  // namespace annulus::inline v0

#endif  // ANNULUS_PLAN_H_
