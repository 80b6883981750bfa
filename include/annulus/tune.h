#ifndef ANNULUS_TUNE_H_
#define ANNULUS_TUNE_H_

// Finding the best kernel configuration for a problem on a device, once, and keeping it:
//
//   TuneResult result = tune(device, problem);       // seconds to minutes
//   Plan plan = device.plan(problem);                // uses it, in this process and in later ones
//
// Every candidate is compared with the float64 oracle before its time counts. On a GPU times are
// measured, each round beside the heuristic's own choice. On a simulated device they are predicted
// by a model of the chip's pipes; such results are marked and never used on a GPU. A candidate
// replaces the heuristic's choice only where it is faster beyond the noise, so a tuned plan is
// never one that was found slower. Tuning changes the speed and the last bits of an answer, nothing
// else.
//
// Results live in the first folder of DeviceOptions::tuned_path that takes them, one file
// for each kind of problem (docs/tuning.md).

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "annulus/batch.h"
#include "annulus/device.h"
#include "annulus/selection.h"

namespace annulus::inline v0 {

// The progress of a call of tune(). Strings live as long as the callback runs.
struct TuneProgress {
  int done = 0;        // candidates that were tried or dropped
  int candidates = 0;  // of the whole space; most searches end long before
  int most = 0;        // that may be tried or dropped before the search ends by itself
  std::string config;  // the last one
  std::string outcome;
  std::string best;       // so far
  double best_ratio = 1;  // its time over that of the heuristic's choice
  double seconds = 0;     // since the call
};

struct TuneOptions {
  double time_limit_seconds = 0;  // the search then ends with the best so far; 0: no limit
  // Ends the search as the time limit does, soon after it turns true. May be set by a signal
  // handler. Must outlive the call.
  const std::atomic<bool>* cancel = nullptr;
  std::function<void(const TuneProgress&)> progress;  // called on the caller's thread
  bool exhaustive = false;                            // try the whole space
  bool force = false;    // search again and replace the result that is stored
  bool dry_run = false;  // only list what would be tried: run and write nothing
  // Empty L2 before each launch whose time decides. In either case the finalists are measured in
  // the other state too.
  bool cold_cache = false;
  std::uint64_t seed = 0;  // seed of the operands
  // Keep the journal of the search beside the result (docs/tuning.md) where the search ends by
  // itself, which otherwise removes it.
  bool keep_journal = false;
};

struct TuneCandidate {
  std::string config;
  double model_cycles = 0;  // predicted from the plan alone; what orders the search
  std::string outcome;      // "tried", "not tried", or why it was dropped
  double time = 0;          // median where it was tried, in the result's unit
  double ratio = 0;         // median of its times over the heuristic choice's, round by round
};

enum class TuneStatus : int {
  kTuned = 0,         // the search ended by itself
  kPartial = 1,       // a limit or the caller ended the search; a later call searches again
  kAlreadyThere = 2,  // nothing was run
  kPlanned = 3,       // a dry run
};

struct TuneResult {
  TuneStatus status = TuneStatus::kTuned;
  std::string shape;           // kind of problem; empty, as configs are, where it ended before
  std::string config;          // the configuration that Device::plan uses from now on
  std::string default_config;  // the heuristic's choice
  std::string runner_up;       // empty where there is none
  bool predicted = false;      // times are predicted cycles; else measured microseconds
  double time = 0;             // median of config's times
  double default_time = 0;     // of default_config in the same rounds
  double ratio = 1;            // time over default_time
  double ratio_low = 1;        // its 95 % interval
  double ratio_high = 1;
  // The median of the ratio with L2 cold, or warm with TuneOptions::cold_cache; 0 where it was not
  // measured. A configuration that is slower than the default in that state replaces nothing.
  double other_ratio = 0;
  // Rounds that were repeated because the device was slower in them than it can be: throttled, or
  // busy with something else. `slowed` says that it stayed so, and that what was measured later is
  // of that pace.
  int repeated_rounds = 0;
  bool slowed = false;
  int candidates = 0;  // of the space
  int tried = 0;       // 0: the search ended before the first candidate, and there are no times
  int dropped = 0;
  double seconds = 0;   // that the call took
  std::string path;     // of the entry's file; empty where the result is in memory only
  std::string problem;  // why the result is in memory only although a folder was given
  // Where `problem` is not empty, the file that could not be written: its name below a folder of
  // tuned results, and its text, a line of ASCII and a line of JSON. Written there by hand, or by
  // another program, the result is kept.
  std::string file_name;
  std::string file;
  std::vector<TuneCandidate> trials;  // in the order of the space; empty for kAlreadyThere
  // The journal of the search, from which a later call goes on or replay_tuning() decides again;
  // empty where there is none (any more).
  std::string journal;
  // Candidates that an earlier search, which was cut short, had tried or dropped: its journal had
  // them, and they were not run again.
  int resumed = 0;
};

// Blocks the calling thread and uses the default stream; nothing else should run on the device
// meanwhile, and nothing may on a simulated one. Safe to call for several devices at a time. Throws
// what Device::plan throws; Error{kInvalidArgument} where there is nothing to launch, or the time
// limit is negative; Error{kFile} where no folder of the given path can be written to;
// Error{kFault} where a candidate faulted on a GPU, whose context is lost then; Error{kInternal}
// where the heuristic's own choice gives a wrong answer.
ANNULUS_EXPORT TuneResult tune(const Device& device, const Problem& problem,
                               const TuneOptions& options = {});

// The same for plans with a selection: the attention of the chosen blocks, in whose place blocks
// are taken that are drawn at random, as many of each row as a run may choose; 16 where only the
// device will know. How blocks are scored and chosen does not depend on the configuration. Throws
// what Device::plan throws for the selection as well.
ANNULUS_EXPORT TuneResult tune(const Device& device, const Problem& problem,
                               const Selection& selection, const TuneOptions& options = {});

// Requests of a step whose time decides between configurations of a batch's kernels.
struct StepRequests {
  std::int64_t requests = 1;  // as many as these
  std::int64_t queries = 1;
  std::int64_t keys = 1;
};

// Tunes the kernels of a batch (annulus/batch.h): one search for each class of requests, few
// queries and many queries, whose results plan_batch() uses from now on for batches with about the
// same bounds. What is measured is run() on the requests of the class in `step`; where a step has
// none of a class, that is not searched. Empty: steps are made of the bounds. Few queries: as many
// requests as there may be, which share `keys`, with as many queries as `rows` allow, or with one
// where a request may have more than are few; many queries: as many requests as `rows` allow of the
// most queries that one may have. A result for each class that was searched, in the order of
// BatchInfo::config. On a simulated device few queries are predicted by the model of annulus
// explain, many queries by how much work the slowest pipe has. `options` and errors are those of
// tune(); Error{kInvalidArgument} as well for a step that is not within the bounds, and what
// plan_batch() throws.
ANNULUS_EXPORT std::vector<TuneResult> tune_batch(const Device& device, const BatchProblem& problem,
                                                  const std::vector<StepRequests>& step = {},
                                                  const TuneOptions& options = {});

// ---- In the background

struct BackgroundTuningOptions {
  // What is tuned, in this order, and then the batches, each for steps that are made of its bounds.
  // Both empty: what Device::plan and plan_batch plan while this lives, the most often planned
  // first, as far as DeviceOptions::shape_log could count it.
  std::vector<Problem> problems;
  std::vector<BatchProblem> batches;
  // Asked before each measurement, on the thread that tunes; not set: it may always. True is a
  // promise of the host: until `measured` is called, nothing else runs on the device, no plan of
  // this or another library, no kernel and no copy of the host's own, and no other call of tune().
  // False, or an exception: it is asked again after ask_again_seconds. A measurement checks one
  // candidate or times some rounds; on a GPU that takes milliseconds, for problems that run long
  // some dozen runs of theirs.
  std::function<bool()> may_measure;
  // Called after each `true`, on the same thread, when the device has done all of it; so these two
  // may be the try_lock and the unlock of one mutex. It is called with no lock of the library held.
  std::function<void()> measured;
  double ask_again_seconds = 0.01;
  // Work on one problem or batch, without the time that it waited; its search then ends with the
  // best so far. 0: no limit.
  double time_limit_seconds = 0;
  // How many threads compute the oracle's answers; 0: one per processor.
  int threads = 1;
  std::function<void(const TuneProgress&)> progress;
  // Called when a problem was tuned, and its result is stored, or was there already.
  std::function<void(const Problem&, const TuneResult&)> tuned;
  // Likewise, for each class of a batch's requests.
  std::function<void(const BatchProblem&, const TuneResult&)> tuned_batch;
  // Gets one task, which the host calls once, on a thread that it does without as long as the
  // tuning goes on. Not set: a thread of the library's own. Where it is the only thread of
  // DeviceOptions::executor too, kernels of plans that do not wait are compiled after the tuning,
  // which waits for those of plans that follow it: give it another one.
  std::function<void(std::function<void()> task)> executor;
};

struct BackgroundTuningStatus {
  enum class State : int {
    kTuning = 0,
    kPaused = 1,  // by pause()
    kIdle = 2,    // all that was planned so far is tuned
    kEnded = 3,   // all problems that were given are tuned, or it was cancelled
  };
  State state = State::kTuning;
  std::int64_t tuned = 0;          // searches that ended by themselves
  std::int64_t partial = 0;        // that a limit or the end cut short
  std::int64_t already_there = 0;  // problems, and classes of batches, that had a complete result
  std::int64_t failed = 0;         // problems and batches
  std::int64_t measurements = 0;   // that began
  std::int64_t refusals = 0;       // times that may_measure said no
  std::string last_error;          // of the last problem that failed, or why all ended
};

// Tunes on a thread beside the host, which says when the device may be measured on. Results are
// stored as those of tune() and tune_batch() are: plans that are made later use them, and plans
// that exist learn of them where PlanOptions::follow_tuning says so. A batch's plan, which says
// nothing of that, keeps its kernels: its engine plans the batch again where it wants others.
//
//   std::mutex mutex;                                      // who has the device
//   BackgroundTuningOptions options;
//   options.may_measure = [&] { return no_request_waits() && mutex.try_lock(); };
//   options.measured = [&] { mutex.unlock(); };
//   BackgroundTuning tuning(device, options);
//   for (const Request& request : requests) {
//     const std::lock_guard lock(mutex);
//     serve(request);                                      // plans and runs
//   }
//
// Between measurements it plans, compiles, computes on the host, and copies operands to the device
// on its default stream: streams of the host that wait for that one, as those without
// CU_STREAM_NON_BLOCKING do, are not to be captured meanwhile. Several tunings of one device
// measure one after another. It takes device memory for the operands of a problem. A candidate that
// faults on a GPU loses the context, for the host as well: the tuning then ends. No function of the
// host is called any more once this is destroyed or the last copy of the device is gone; both wait
// for the measurement or the compilation under way, which is taken up where it was by a later
// search (docs/tuning.md#the-journal). Callbacks must not call the library with the same device,
// and destroy neither the tuning nor the device. What they throw is noted in the log, once.
class ANNULUS_EXPORT BackgroundTuning {
 public:
  // Holds no device open. Throws Error{kInvalidArgument} for numbers out of range, what validate()
  // throws for a problem, Error{kOutOfMemory} where the system refuses a thread, and what
  // `executor` throws. Error{kUnsupported} in a build without the tuner.
  explicit BackgroundTuning(const Device& device, const BackgroundTuningOptions& options = {});
  ~BackgroundTuning();
  BackgroundTuning(const BackgroundTuning&) = delete;
  BackgroundTuning& operator=(const BackgroundTuning&) = delete;

  // No measurement begins until resume() was called as often; waits for the one under way, unless
  // one of the callbacks calls it. May be used in place of may_measure or beside it, from any
  // thread; may_measure must not wait for who pauses.
  void pause() const;
  // Throws Error{kInvalidArgument} where it is not paused.
  void resume() const;
  // Waits until nothing is left to tune, at most so many seconds; negative: for as long as it
  // takes. False where the time was over. Throws Error{kInvalidArgument} for NaN, and in one of the
  // callbacks.
  bool wait(double seconds = -1) const;
  // Ends it as soon as may be, without waiting; measures nothing any more.
  void cancel() const;
  BackgroundTuningStatus status() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Decides again from the journal of a search, without its device: the same configuration wins. A
// journal of a search that was cut short gives what that would have kept; status is then kPartial.
// `progress`, where it is given, is called as in the search, with seconds 0. Touches no file but
// the journal and uses no device; safe to call from any thread. Throws Error{kFile} where it cannot
// be read, Error{kInvalidFile} where it is no journal or one of another version,
// Error{kUnsupported} where it ends before the heuristic's own choice was measured.
ANNULUS_EXPORT TuneResult replay_tuning(
    const std::string& journal, const std::function<void(const TuneProgress&)>& progress = {});

// One result as its file or pack states it.
struct TunedEntry {
  std::string path;  // of its file, or of the pack that it is in
  std::string name;  // among others of its device: "<32 hex digits>-wgmma3", also its file's name
  bool packed = false;  // in a pack
  std::string device;   // the chip that it was found on
  std::string shape;    // the problems that it is for: "D64 bf16, causal, ..., queries 862 to 1217"
  std::string kind;     // besides lengths and heads: "D64 bf16, causal, about 0.5 of the blocks"
  // Why no device uses it with this build: its kernels are of another revision. Empty: they do.
  std::string outdated;
  std::string config;
  std::string default_config;  // the heuristic's choice, which it was compared with
  std::string runner_up;
  bool predicted = false;
  bool complete = false;
  double time = 0;  // cycles where predicted, else microseconds
  double default_time = 0;
  double ratio_low = 1;
  double ratio_high = 1;
  bool cold_cache = false;  // L2 was empty before each launch
  double other_ratio = 0;   // as in TuneResult, as is the next one
  int repeated_rounds = 0;
  int rounds = 0;
  int candidates = 0;
  int library_version = 0;  // ANNULUS_VERSION
  int driver_version = 0;
  int nvrtc_version = 0;     // 13000 is 13.0
  int clock_mhz = 0;         // that the driver stated
  int memory_clock_mhz = 0;  // likewise
  std::int64_t when = 0;     // seconds since 1970
  // The problem that was measured.
  std::int64_t batch = 0, heads = 0, kv_heads = 0, seq_q = 0, seq_k = 0;
  std::string pattern;  // empty where it names a file or is long
};

struct TunedListing {
  std::vector<std::string> folders;  // the search path: folders and packs
  std::vector<TunedEntry> entries;   // of all devices, in the order of the path and of names
  std::vector<std::string> ignored;  // files and folders that are not used, each with the reason
};

// Lists the results of a search path, as DeviceOptions::tuned_path, and behind it of those that
// were installed with the library. Opens no device. Throws only std::bad_alloc.
ANNULUS_EXPORT TunedListing list_tuned(const std::optional<std::string>& tuned_path = {});

// Why plans on a device do not use a result, with what differs: another chip, or kernels of another
// revision. Empty where they use it for such problems, unless something goes before it, as the
// device's own results go before those of a relative (docs/tuning.md).
ANNULUS_EXPORT std::string why_unused(const TunedEntry& entry, const DeviceInfo& device);

struct TuningReport {
  std::string json;  // the document: ASCII, at most 64 MiB; docs/tuning.md has its members
  int searches = 0;  // searches in the document, each from its journal
  int entries = 0;   // results without a journal in the document
  std::vector<std::string> left_out;  // files and lines that are not in it, each with the reason
};

// Describes searches and results in one document: for each search that left a journal its problem,
// all candidates with their predictions, times and ratios to the default, the order in which they
// were tried, the winner, and the stored result; and results without a journal as list_tuned() has
// them. The program `annulus tune report` makes a page of HTML of the document. A path is a
// journal, the file of a result, a pack, or a folder of these or of folders with these; without
// paths the report is of the search path, as list_tuned(). Searches and files beyond the bounds of
// time, memory and bytes in docs/tuning.md are in left_out. The same files make the same document.
//
// Opens no device and writes no file; safe to call from any thread. The texts of the document are
// copied from the files: escape them before they become markup or reach a terminal. Throws
// Error{kFile} if a path cannot be read and Error{kInvalidFile} if it is none of these, each with
// the path; Error{kUnsupported} for a pack of another schema, and from a build without the tuner.
// Files of folders that cannot be read are left out.
ANNULUS_EXPORT TuningReport tuning_report(const std::vector<std::string>& paths = {},
                                          const std::optional<std::string>& tuned_path = {});

// Tuned results that travel: many of them in one text file, a pack, which can be compared, merged,
// checked on another machine and shipped (docs/tuning.md):
//
//   export_tuned("fleet.pack");                          what this machine has found
//   merge_tuned({"a.pack", "b.pack"}, "fleet.pack");     in any order, as often as one likes
//   TunedVerifyOptions options;
//   options.packs = {"fleet.pack"};
//   options.measure = 3;                                 // so many are measured again
//   verify_tuned(device, options);
//
// A pack is used where it lies: in DeviceOptions::tuned_path, in a folder of that path, or in
// share/annulus/tuned of the installation. Paths of packs here may be relative; packs that are
// named are read wherever they are, whoever may write to them. All functions may be called from any
// thread, and by several processes on one folder. They throw Error{kFile} where a file cannot be
// read or written, Error{kInvalidFile} where a pack that is named is none, was cut or changed,
// Error{kUnsupported} where it is of another schema: that of a newer library, it then says.

// A verdict says what became of an entry, or what is found of it.
enum class TunedVerdict : int {
  // export_tuned, import_tuned, merge_tuned
  kAdded = 0,
  kReplaced = 1,  // an entry for the same problems and kernels, than which it is better
  kKept = 2,      // the one that was there is better, or the same
  // diff_tuned
  kFirstOnly = 3,
  kSecondOnly = 4,
  kDiffers = 5,  // the text says in what
  // verify_tuned, why_tuned
  kUsed = 6,    // plans for such problems use it
  kUnused = 7,  // for the reason in the text
  // verify_tuned, of what was measured again
  kHolds = 8,   // faster than the heuristic's choice, beyond the noise, or that choice itself
  kWeaker = 9,  // not slower, but not faster beyond the noise either
  kFails = 10,  // slower than the heuristic's choice beyond the noise, or its kernel does not work
  kNotMeasured = 11,  // could not be measured here, for the reason in the text
  // prune_tuned, remove_tuned
  kRemoved = 12,  // or would be, in a dry run
};
// "added", "replaced", "kept", "first only", "second only", "differs", "used", "not used", "holds",
// "weaker", "fails", "not measured", "removed".
ANNULUS_EXPORT const char* to_string(TunedVerdict verdict);

// An entry and what is said of it.
struct TunedNote {
  TunedEntry entry;  // of a file that holds none: its path alone
  TunedVerdict verdict = TunedVerdict::kUsed;
  std::string text;
};

struct TunedReport {
  std::vector<TunedNote> notes;
  std::vector<std::string>
      left_out;  // files, folders and lines of packs that hold no entry, and why

  // why_tuned alone fills these: the kind of the problem, the configuration that a plan has, and
  // why.
  std::string shape;
  std::string config;
  std::string reason;
};

// Which entries are meant: those that have all that is asked for.
struct TunedFilter {
  std::string name;            // part of TunedEntry::name or path; empty: any
  std::string device;          // part of TunedEntry::device; empty: any
  bool measured_only = false;  // no predictions
  bool complete_only = false;  // none of a search that was cut short
};

// Writes the entries of a search path to a pack, which is replaced where it exists: packs of the
// path too, without what was installed with the library. Not given: the default path. Throws
// Error{kInvalidArgument}, and writes nothing, if no entry is meant, or if the pack would be larger
// than 64 MiB, which is the most that is read.
ANNULUS_EXPORT TunedReport export_tuned(const std::string& pack, const TunedFilter& filter = {},
                                        const std::optional<std::string>& tuned_path = {});

// Writes the entries of packs to the first folder of a search path that takes them, whatever
// devices they are of; a better entry that is there stays. To use a pack, putting it into a folder
// of the path is enough: this is for folders that are tuned in as well. A folder in which a device
// would have more than 10000 entries, the most that is read, takes none.
ANNULUS_EXPORT TunedReport import_tuned(const std::vector<std::string>& packs,
                                        const TunedFilter& filter = {},
                                        const std::optional<std::string>& tuned_path = {});

// Writes all entries of some packs to one. Of two for the same device, problems and kernels one
// stays: a complete search before one that was cut short, then the surer gain, then a fixed order.
// So the result does not depend on the order of the packs, and merging it again changes nothing.
// Throws Error{kInvalidArgument} as export_tuned.
ANNULUS_EXPORT TunedReport merge_tuned(const std::vector<std::string>& packs,
                                       const std::string& to);

// In what two packs, or search paths, differ. A pack's name ends in ".pack". Throws Error{kFile}
// where nothing is at a path, or at none of the places of a search path.
ANNULUS_EXPORT TunedReport diff_tuned(const std::string& first, const std::string& second);

struct TunedVerifyOptions {
  std::vector<std::string> packs;  // none: what the device's search path holds
  // So many of the entries that serve the device are measured again beside the heuristic's choice,
  // as tune() does, spread over all; 0: none. On a simulated device times are predicted.
  int measure = 0;
  std::uint64_t seed = 0;  // of the operands and of which entries are taken
  // Ends measuring soon after it turns true. Must outlive the call.
  const std::atomic<bool>* cancel = nullptr;
  std::function<void(const TunedNote&)> progress;  // after each that was measured
};

// Whether entries serve a device, and why not where they do not: another chip, another revision of
// the kernels, a configuration that is not legal here. Throws as tune() too, where it measures.
ANNULUS_EXPORT TunedReport verify_tuned(const Device& device,
                                        const TunedVerifyOptions& options = {});

// Removes files of a search path that no plan of this build or a newer one uses: those of earlier
// revisions of the kernels, of earlier schemas, damaged ones. With `device_key`
// (DeviceInfo::tuned_key) also those of other devices, relatives apart. Journals that no search
// goes on from are removed too: of searches that have ended, of earlier revisions, damaged ones.
// What may be a newer build's, what could not be read and what was written meanwhile stays. Packs
// are left as they are.
ANNULUS_EXPORT TunedReport prune_tuned(const std::optional<std::string>& tuned_path = {},
                                       const std::optional<std::string>& device_key = {},
                                       bool dry_run = false);

// Removes the one file whose entry has `name` in its name or path. Throws Error{kInvalidArgument}
// where none or several have, or where it is in a pack; Error{kFile} too where the file has changed
// since it was looked at.
ANNULUS_EXPORT TunedReport remove_tuned(const std::string& name,
                                        const std::optional<std::string>& tuned_path = {},
                                        bool dry_run = false);

// Which entry a plan of this problem uses on a device, and of each other one of the device's search
// path why it does not, those first that come nearest. Throws as Device::plan.
ANNULUS_EXPORT TunedReport why_tuned(const Device& device, const Problem& problem);
// The same for a plan with a selection. Throws as Device::plan with it.
ANNULUS_EXPORT TunedReport why_tuned(const Device& device, const Problem& problem,
                                     const Selection& selection);
// The same for a batch, each class of whose requests has an entry of its own: the texts of the
// report are those of all classes, "; " between them and ", " between configurations. Throws as
// plan_batch.
ANNULUS_EXPORT TunedReport why_tuned(const Device& device, const BatchProblem& problem,
                                     const BatchOptions& options = {});

}  // namespace annulus::inline v0

#endif  // ANNULUS_TUNE_H_
