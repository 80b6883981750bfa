#ifndef ANNULUS_TUNE_H_
#define ANNULUS_TUNE_H_

// Tuning: finding the best kernel configuration for a problem on a device, and keeping it.
//
//   TuneResult result = tune(device, problem);       // seconds to minutes
//   Plan plan = device.plan(problem);                // uses it, in this process and in later ones
//
// Every candidate's output is compared with the float64 oracle before its time counts. On a GPU,
// times are measured in rounds, each together with the heuristic's choice. On a simulated device,
// times are predicted by a model of the chip's pipes; such results are marked and never used on a
// GPU. A candidate replaces the heuristic's choice only if it is faster beyond the noise. Tuning
// changes the speed and the last bits of a result, nothing else.
//
// Results are files, one for each kind of problem, in the first writable folder of
// DeviceOptions::tuned_path (docs/tuning.md).

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

// The progress of a call of tune(). Texts are valid during the callback.
struct TuneProgress {
  int done = 0;        // candidates that were tried or dropped
  int candidates = 0;  // candidates of the whole space; most searches end long before
  int most = 0;        // candidates after which the search ends by itself
  std::string config;  // the last candidate
  std::string outcome;
  std::string best;       // the best candidate so far
  double best_ratio = 1;  // its time over the time of the heuristic's choice
  double seconds = 0;     // time since the beginning of the call
};

struct TuneOptions {
  double time_limit_seconds = 0;  // the search then ends with the best so far; 0: no limit
  // Ends the search like the time limit, soon after it becomes true. A signal handler may set it.
  // It must outlive the call.
  const std::atomic<bool>* cancel = nullptr;
  std::function<void(const TuneProgress&)> progress;  // called on the caller's thread
  bool exhaustive = false;                            // try the whole space
  bool force = false;                                 // search again and replace the stored result
  bool dry_run = false;  // only list the candidates: run and write nothing
  // Empty L2 before each launch whose time decides. The finalists are also measured in the other
  // state, with L2 cold or warm.
  bool cold_cache = false;
  std::uint64_t seed = 0;  // seed of the operands
  // Keep the journal (docs/tuning.md) next to the result. By default a completed search removes it.
  bool keep_journal = false;
};

struct TuneCandidate {
  std::string config;
  double model_cycles = 0;  // predicted from the plan alone; decides the order of the search
  std::string outcome;      // "tried", "not tried", or why it was dropped
  double time = 0;          // median if it was tried, in the result's unit
  double ratio = 0;         // median over the rounds of its time over the heuristic choice's time
};

enum class TuneStatus : int {
  kTuned = 0,         // the search ended by itself
  kPartial = 1,       // a limit or the caller ended the search; a later call searches again
  kAlreadyThere = 2,  // there was a result, and nothing was run
  kPlanned = 3,       // a dry run
};

struct TuneResult {
  TuneStatus status = TuneStatus::kTuned;
  std::string shape;           // kind of problem; empty, like configs, if the call ended before it
  std::string config;          // the configuration that Device::plan uses from now on
  std::string default_config;  // the heuristic's choice
  std::string runner_up;       // empty if there is none
  bool predicted = false;      // times are predicted cycles; else measured microseconds
  double time = 0;             // median time of config
  double default_time = 0;     // median time of default_config in the same rounds
  double ratio = 1;            // time over default_time
  double ratio_low = 1;        // 95 % interval of the ratio
  double ratio_high = 1;
  // The median ratio with L2 cold, or with L2 warm if TuneOptions::cold_cache; 0 if it was not
  // measured. A configuration that is slower than the default in that state is not accepted.
  double other_ratio = 0;
  // The number of rounds that were repeated because the device was slower than it can be:
  // throttled, or busy with other work. `slowed`: it and later times stayed slow.
  int repeated_rounds = 0;
  bool slowed = false;
  int candidates = 0;  // candidates of the space
  int tried = 0;       // 0: the search ended before the first candidate, and there are no times
  int dropped = 0;
  double seconds = 0;   // duration of the call
  std::string path;     // the result's file; empty if the result is only in memory
  std::string problem;  // why the result is only in memory although a folder was given
  // If `problem` is not empty, the file that could not be written: its name below a folder of tuned
  // results, and its text, a line of ASCII and a line of JSON. To keep the result, write it there
  // by hand or from another program.
  std::string file_name;
  std::string file;
  std::vector<TuneCandidate> trials;  // in the order of the space; empty for kAlreadyThere
  // The journal of the search, from which a later call continues, and from which replay_tuning()
  // decides again; empty if there is no journal (any more).
  std::string journal;
  // Candidates that were not run because the journal of an earlier, interrupted search had them.
  int resumed = 0;
};

// Blocks the calling thread and uses the default stream. Nothing else should run on the device
// during the call; on a simulated device nothing else may. Calls for different devices may run at
// the same time. Throws the errors of Device::plan; Error{kInvalidArgument} if the problem launches
// nothing or the time limit is negative; Error{kFile} if no folder of the given path is writable;
// Error{kFault} if a candidate faulted on a GPU, whose context is then lost; and Error{kInternal}
// if the heuristic's choice gives a wrong result.
ANNULUS_EXPORT TuneResult tune(const Device& device, const Problem& problem,
                               const TuneOptions& options = {});

// Tunes plans with a selection. It measures the attention over random blocks: the number per row
// that a run may select, or 16 if only the device will know it. Scoring and selecting blocks do not
// depend on the configuration. Also throws the errors of Device::plan for the selection.
ANNULUS_EXPORT TuneResult tune(const Device& device, const Problem& problem,
                               const Selection& selection, const TuneOptions& options = {});

// A group of equal requests in a step that tune_batch() measures.
struct StepRequests {
  std::int64_t requests = 1;  // the number of requests in the group
  std::int64_t queries = 1;   // queries of each
  std::int64_t keys = 1;      // keys of each
};

// Tunes the kernels of a batch (annulus/batch.h) with one search for each class of requests (few
// queries, many queries). Afterwards plan_batch() uses the results for batches with about the same
// bounds. It measures run() on the requests of the class in `step` and skips classes without
// requests. An empty `step` is made from the bounds: for few queries, the most requests, which
// share `keys` and have the number of queries that `rows` allows, or one query if a request may
// have more queries than the class; for many queries, the number of requests that `rows` allows
// with the most queries of a request. Returns the results of the searched classes in the order of
// BatchInfo::config. On a simulated device, few queries are predicted by the model of `annulus
// explain`, many queries by the work of the slowest pipe. Throws the errors of tune() and
// plan_batch(), and Error{kInvalidArgument} for a step that is not within the bounds.
ANNULUS_EXPORT std::vector<TuneResult> tune_batch(const Device& device, const BatchProblem& problem,
                                                  const std::vector<StepRequests>& step = {},
                                                  const TuneOptions& options = {});

// ---- Background tuning

struct BackgroundTuningOptions {
  // The problems and then the batches to tune, in this order; batches with steps made from their
  // bounds. If both are empty, it tunes what Device::plan and plan_batch plan during its lifetime
  // and what DeviceOptions::shape_log could count, the most frequent first.
  std::vector<Problem> problems;
  std::vector<BatchProblem> batches;
  // Called before each measurement, on the tuning thread; not set: measurements are always allowed.
  // True is a promise of the host: until `measured` is called, nothing else runs on the device (no
  // plan of this or another library, no kernel or copy of the host, no other call of tune()). After
  // false or an exception it is called again in ask_again_seconds. A measurement checks one
  // candidate or times some rounds. It takes milliseconds on a GPU, or some dozen long runs.
  std::function<bool()> may_measure;
  // Called after each `true`, on the same thread, when the device has finished, without a lock of
  // the library. So the two may be the try_lock and the unlock of one mutex.
  std::function<void()> measured;
  double ask_again_seconds = 0.01;
  // Limit of the work on one problem or batch, without waiting times. Its search then ends with the
  // best so far. 0: no limit.
  double time_limit_seconds = 0;
  // The number of threads that compute the oracle's results; 0: one per processor.
  int threads = 1;
  std::function<void(const TuneProgress&)> progress;
  // Called when a problem's result is stored, or was there already.
  std::function<void(const Problem&, const TuneResult&)> tuned;
  // Called in the same way for each class of a batch's requests.
  std::function<void(const BatchProblem&, const TuneResult&)> tuned_batch;
  // Receives one task, which the host calls once, on a thread that stays occupied until the tuning
  // ends. Not set: a thread of the library. It should not be the only thread of
  // DeviceOptions::executor: then kernels of plans that do not wait would be compiled only after
  // the tuning, which waits for the kernels of plans that follow it.
  std::function<void(std::function<void()> task)> executor;
};

struct BackgroundTuningStatus {
  enum class State : int {
    kTuning = 0,
    kPaused = 1,  // by pause()
    kIdle = 2,    // everything planned so far is tuned
    kEnded = 3,   // all given problems and batches are tuned, or it was cancelled
  };
  State state = State::kTuning;
  std::int64_t tuned = 0;          // searches that ended by themselves
  std::int64_t partial = 0;        // searches that a limit or the end interrupted
  std::int64_t already_there = 0;  // problems, and classes of batches, that had a complete result
  std::int64_t failed = 0;         // problems and batches that failed
  std::int64_t measurements = 0;   // measurements that began
  std::int64_t refusals = 0;       // calls of may_measure that returned false
  std::string last_error;          // the error of the last failed problem, or why the tuning ended
};

// Tunes on another thread, while the host decides when the device may be measured. Results are
// stored like results of tune() and tune_batch(): later plans use them, and existing plans adopt
// them with PlanOptions::follow_tuning. A BatchPlan keeps its kernels; plan it again for new
// results.
//
//   std::mutex mutex;                                      // held by the user of the device
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
// on its default stream. So streams that synchronise with the default stream, which are all streams
// without CU_STREAM_NON_BLOCKING, must not be captured during the tuning. Several tunings of one
// device measure one after another. It takes device memory for the operands of a problem. If a
// candidate faults on a GPU, the context is lost, for the host too, and the tuning ends.
//
// The destructor, and the destructor of the device's last copy, wait for the measurement or
// compilation in progress, which a later search resumes (docs/tuning.md#the-journal). Afterwards no
// callback is called. Callbacks must not call the library with the same device, and must destroy
// neither the tuning nor the device. Their exceptions are logged once.
class ANNULUS_EXPORT BackgroundTuning {
 public:
  // Does not keep the device open. Throws Error{kInvalidArgument} for numbers out of range, the
  // errors of validate() for a problem, Error{kOutOfMemory} if the system refuses a thread, the
  // exceptions of `executor`, and Error{kUnsupported} in a build without the tuner.
  explicit BackgroundTuning(const Device& device, const BackgroundTuningOptions& options = {});
  ~BackgroundTuning();
  BackgroundTuning(const BackgroundTuning&) = delete;
  BackgroundTuning& operator=(const BackgroundTuning&) = delete;

  // Stops measurements until resume() was called the same number of times, and waits for a
  // measurement in progress, unless a callback calls it. Any thread may call it, with or without
  // may_measure; may_measure must not wait for the pausing thread.
  void pause() const;
  // Throws Error{kInvalidArgument} if it is not paused.
  void resume() const;
  // Waits until nothing is left to tune, for at most `seconds`, or without limit if negative.
  // Returns false if the time ran out. Throws Error{kInvalidArgument} for NaN, and in a callback.
  bool wait(double seconds = -1) const;
  // Ends the tuning soon, without waiting and without further measurements.
  void cancel() const;
  BackgroundTuningStatus status() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// ---- Stored results

// Decides again from the journal of a search, without its device, and chooses the same
// configuration. For the journal of an interrupted search, the result is what the search would have
// kept, and status is kPartial. `progress` is called as in the search, with seconds 0. It reads
// only the journal and uses no device. Any thread may call it. Throws Error{kFile} if the journal
// cannot be read, Error{kInvalidFile} if it is not a journal or has another version, and
// Error{kUnsupported} if it ends before the heuristic's choice was measured.
ANNULUS_EXPORT TuneResult replay_tuning(
    const std::string& journal, const std::function<void(const TuneProgress&)>& progress = {});

// One stored result.
struct TunedEntry {
  std::string path;     // its file, or its pack
  std::string name;     // unique on its device: "<32 hex digits>-wgmma3", and the name of its file
  bool packed = false;  // it is in a pack
  std::string device;   // the chip on which it was found
  std::string shape;    // its problems: "D64 bf16, causal, ..., queries 862 to 1217"
  std::string kind;     // its problems without lengths and heads: "D64 bf16, causal, ..."
  // Why no device uses it with this build: its kernels have another revision. Empty: usable.
  std::string outdated;
  std::string config;
  std::string default_config;  // the heuristic's choice, with which it was compared
  std::string runner_up;
  bool predicted = false;
  bool complete = false;
  double time = 0;  // cycles if predicted, else microseconds
  double default_time = 0;
  double ratio_low = 1;
  double ratio_high = 1;
  bool cold_cache = false;  // L2 was emptied before each launch
  double other_ratio = 0;   // see TuneResult
  int repeated_rounds = 0;  // see TuneResult
  int rounds = 0;
  int candidates = 0;
  int library_version = 0;  // ANNULUS_VERSION
  int driver_version = 0;
  int nvrtc_version = 0;  // 13000 is 13.0
  int clock_mhz = 0;      // clock rates from the driver
  int memory_clock_mhz = 0;
  std::int64_t when = 0;  // seconds since 1970
  // The problem that was measured.
  std::int64_t batch = 0, heads = 0, kv_heads = 0, seq_q = 0, seq_k = 0;
  std::string pattern;  // empty if it names a file or is long
};

struct TunedListing {
  std::vector<std::string> folders;  // the search path: folders and packs
  std::vector<TunedEntry> entries;   // entries of all devices, in the order of path and names
  std::vector<std::string> ignored;  // unused files and folders, each with the reason
};

// Lists the results of a search path (DeviceOptions::tuned_path), followed by the results that were
// installed with the library. Opens no device. Throws only std::bad_alloc.
ANNULUS_EXPORT TunedListing list_tuned(const std::optional<std::string>& tuned_path = {});

// Why plans on a device do not use a result: another chip, or kernels of another revision. Empty if
// plans use it for its problems, unless another result has priority, for example the device's own
// over a relative's (docs/tuning.md).
ANNULUS_EXPORT std::string why_unused(const TunedEntry& entry, const DeviceInfo& device);

struct TuningReport {
  std::string json;  // the document: ASCII, at most 64 MiB; docs/tuning.md has its members
  int searches = 0;  // searches in the document, each from its journal
  int entries = 0;   // results without a journal in the document
  std::vector<std::string> left_out;  // omitted files and lines, each with the reason
};

// Describes searches and results in one document. A search that left a journal has its problem, all
// candidates with their predictions, times and ratios to the default, the order in which they were
// tried, the winner and the stored result; a result without a journal is as in list_tuned().
// `annulus tune report` makes an HTML page of the document. A path is a journal, the file of a
// result, a pack, or a folder of these or of folders with these; without paths the report is of the
// search path, as in list_tuned(). left_out has the searches and files beyond the limits of time,
// memory and bytes in docs/tuning.md, and unreadable files. Equal files give equal documents.
//
// Opens no device and writes no file. Any thread may call it. The texts of the document are copied
// from the files: escape them before they reach markup or a terminal. Errors name the path. Throws
// Error{kFile} if a path cannot be read, Error{kInvalidFile} if it is another file, and
// Error{kUnsupported} for a pack of another schema, and in a build without the tuner.
ANNULUS_EXPORT TuningReport tuning_report(const std::vector<std::string>& paths = {},
                                          const std::optional<std::string>& tuned_path = {});

// ---- Packs
//
// A pack is one text file with many tuned results, which can be compared, merged, verified on
// another machine and shipped (docs/tuning.md):
//
//   export_tuned("fleet.pack");                          // the results of this machine
//   merge_tuned({"a.pack", "b.pack"}, "fleet.pack");     // in any order, any number of times
//   TunedVerifyOptions options;
//   options.packs = {"fleet.pack"};
//   options.measure = 3;                                 // measure three results again
//   verify_tuned(device, options);
//
// A pack is used from DeviceOptions::tuned_path, from a folder of that path, or from
// share/annulus/tuned of the installation. Paths of packs here may be relative; packs that are
// passed by name are read from anywhere, even if other users may write to them. Any thread may call
// these functions, and several processes may use one folder. They throw Error{kFile} if a file
// cannot be read or written, Error{kInvalidFile} if a named file is not a pack, or was truncated or
// changed, and Error{kUnsupported} if it has another schema; the message states a newer schema.

// The outcome for an entry.
enum class TunedVerdict : int {
  // export_tuned, import_tuned, merge_tuned
  kAdded = 0,
  kReplaced = 1,  // it replaced a worse entry for the same problems and kernels
  kKept = 2,      // the existing entry is better or equal, and was kept
  // diff_tuned
  kFirstOnly = 3,
  kSecondOnly = 4,
  kDiffers = 5,  // the text has the differences
  // verify_tuned, why_tuned
  kUsed = 6,    // plans for such problems use it
  kUnused = 7,  // the text has the reason
  // verify_tuned, for entries that were measured again
  kHolds = 8,   // it is faster than the heuristic's choice beyond the noise, or is that choice
  kWeaker = 9,  // it is neither faster nor slower beyond the noise
  kFails = 10,  // it is slower beyond the noise, or its kernel does not work
  kNotMeasured = 11,  // it could not be measured here; the text has the reason
  // prune_tuned, remove_tuned
  kRemoved = 12,  // it was removed, or would be in a dry run
};
// "added", "replaced", "kept", "first only", "second only", "differs", "used", "not used", "holds",
// "weaker", "fails", "not measured", "removed".
ANNULUS_EXPORT const char* to_string(TunedVerdict verdict);

// An entry and its verdict.
struct TunedNote {
  TunedEntry entry;  // the entry; for a file without one, only its path
  TunedVerdict verdict = TunedVerdict::kUsed;
  std::string text;
};

struct TunedReport {
  std::vector<TunedNote> notes;
  std::vector<std::string>
      left_out;  // files, folders and lines of packs without an entry, each with the reason

  // Only for why_tuned: the kind of the problem, the configuration of its plan, and the reason.
  std::string shape;
  std::string config;
  std::string reason;
};

// A filter of entries: those that match all of its fields.
struct TunedFilter {
  std::string name;            // part of TunedEntry::name or path; empty: any
  std::string device;          // part of TunedEntry::device; empty: any
  bool measured_only = false;  // no predictions
  bool complete_only = false;  // no results of interrupted searches
};

// Writes the entries of a search path to a pack, and replaces an existing one. Packs of the path
// are included, results that were installed with the library are not. Without `tuned_path` it is
// the default path. Throws Error{kInvalidArgument} and writes nothing if no entry matches, or if
// the pack would exceed 64 MiB, the most that is read.
ANNULUS_EXPORT TunedReport export_tuned(const std::string& pack, const TunedFilter& filter = {},
                                        const std::optional<std::string>& tuned_path = {});

// Writes the entries of packs, for any devices, to the first writable folder of a search path;
// better existing entries stay. It is meant for folders in which tuning continues: to use a pack,
// put it into a folder of the path. It does nothing for a folder in which a device would have more
// than 10000 entries, the most that is read.
ANNULUS_EXPORT TunedReport import_tuned(const std::vector<std::string>& packs,
                                        const TunedFilter& filter = {},
                                        const std::optional<std::string>& tuned_path = {});

// Merges packs into one. Of two entries for the same device, problems and kernels one stays: a
// complete search before an interrupted one, then the more certain gain, then a fixed order. So the
// result does not depend on the order of the packs, and merging it again changes nothing. Throws
// Error{kInvalidArgument} like export_tuned.
ANNULUS_EXPORT TunedReport merge_tuned(const std::vector<std::string>& packs,
                                       const std::string& to);

// The differences of two packs (names that end in ".pack") or search paths. Also throws
// Error{kFile} if a path, or every place of a search path, does not exist.
ANNULUS_EXPORT TunedReport diff_tuned(const std::string& first, const std::string& second);

struct TunedVerifyOptions {
  std::vector<std::string> packs;  // empty: the device's search path
  // The number of usable entries, spread over all of them, to measure again together with the
  // heuristic's choice, as in tune(); 0: none. On a simulated device times are predicted.
  int measure = 0;
  std::uint64_t seed = 0;  // seed of the operands and of the choice of entries
  // Ends measuring soon after it becomes true. It must outlive the call.
  const std::atomic<bool>* cancel = nullptr;
  std::function<void(const TunedNote&)> progress;  // called after each measured entry
};

// Whether plans on a device use entries, and why not: another chip, another revision of the
// kernels, an illegal configuration. If it measures, it also throws the errors of tune().
ANNULUS_EXPORT TunedReport verify_tuned(const Device& device,
                                        const TunedVerifyOptions& options = {});

// Removes files of a search path that plans of this build and of newer builds do not use: earlier
// revisions of the kernels, earlier schemas, damaged files, and with `device_key`
// (DeviceInfo::tuned_key) other devices except relatives. Also removes useless journals: of
// finished searches, of earlier revisions, and damaged ones. It keeps files that may be a newer
// build's, unreadable files, files that are written during the call, and packs.
ANNULUS_EXPORT TunedReport prune_tuned(const std::optional<std::string>& tuned_path = {},
                                       const std::optional<std::string>& device_key = {},
                                       bool dry_run = false);

// Removes the one file whose entry has `name` in its name or path. Throws Error{kInvalidArgument}
// if no file or several files have it, or if it is in a pack; Error{kFile} if the file changes
// during the call.
ANNULUS_EXPORT TunedReport remove_tuned(const std::string& name,
                                        const std::optional<std::string>& tuned_path = {},
                                        bool dry_run = false);

// The entry that a plan of this problem uses on a device, and for each other entry of the device's
// search path why the plan does not use it, the closest first. Throws the errors of Device::plan.
ANNULUS_EXPORT TunedReport why_tuned(const Device& device, const Problem& problem);
// The entries for a plan with a selection.
ANNULUS_EXPORT TunedReport why_tuned(const Device& device, const Problem& problem,
                                     const Selection& selection);
// The entries for a batch, one for each class of its requests. The texts of the report have all
// classes, separated by "; ", and configurations by ", ". Throws the errors of plan_batch.
ANNULUS_EXPORT TunedReport why_tuned(const Device& device, const BatchProblem& problem,
                                     const BatchOptions& options = {});

}  // namespace annulus::inline v0

#endif  // ANNULUS_TUNE_H_
