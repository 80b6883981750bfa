// The public functions of the tuner: the look-up, the places of results, and the reports to
// callers. A build with ANNULUS_TUNER=OFF has tune_left_out.cc in place of this file.
#include "annulus/tune.h"

#include <chrono>
#include <cmath>
#include <set>

#include "api/impl.h"
#include "api/measure_again.h"
#include "api/tune_until.h"
#include "api/tuned_text.h"
#include "autotune/replay.h"
#include "autotune/tuner.h"
#include "base/fail.h"
#include "base/work.h"
#include "selection/selection_plan.h"
#include "tuned/batch_key.h"
#include "tuned/entry_problem.h"

namespace annulus {
namespace api {
namespace {

using Clock = std::chrono::steady_clock;

// Configurations that were best for other problems, which a search tries first.
constexpr std::size_t kNominated = 6;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string outcome_of(const tuned::Trial& trial) {
  switch (trial.outcome) {
    case tuned::Trial::Outcome::kNotTried:
      return "not tried";
    case tuned::Trial::Outcome::kDropped:
      return trial.reason;
    case tuned::Trial::Outcome::kTried:
      return "tried";
  }
  return "unknown outcome";
}

std::vector<TuneCandidate> tell(const std::vector<tuned::Trial>& trials) {
  std::vector<TuneCandidate> all;
  for (const tuned::Trial& trial : trials) {
    TuneCandidate candidate{attention::to_string(trial.config), trial.predicted, outcome_of(trial),
                            0, 0};
    if (trial.outcome == tuned::Trial::Outcome::kTried) {
      candidate.time = trial.time;
      candidate.ratio = trial.ratio.middle;
    }
    all.push_back(std::move(candidate));
  }
  return all;
}

void tell(const tuned::Entry& entry, TuneResult* result) {
  result->config = attention::to_string(entry.config);
  result->runner_up = name_of(entry.runner_up);
  result->predicted = entry.predicted;
  result->time = told(entry.time, entry.predicted);
  result->default_time = told(entry.default_time, entry.predicted);
  result->ratio = result->time / result->default_time;
  result->ratio_low = static_cast<double>(entry.ratio_low_ppm) / 1e6;
  result->ratio_high = static_cast<double>(entry.ratio_high_ppm) / 1e6;
  result->other_ratio = static_cast<double>(entry.other_ratio_ppm) / 1e6;
  result->repeated_rounds = entry.repeated_rounds;
}

// Without a start time, progress reports have no times.
std::function<void(const autotune::SearchProgress&)> teller(
    const TuneOptions& options, std::optional<Clock::time_point> start) {
  if (!options.progress) return {};
  return [&options, start](const autotune::SearchProgress& at) {
    TuneProgress progress;
    progress.done = at.tried;
    progress.candidates = at.candidates;
    progress.most = at.most;
    progress.config = attention::to_string(at.last->config);
    progress.outcome = outcome_of(*at.last);
    progress.best = attention::to_string(at.best->config);
    progress.best_ratio = at.best->ratio.middle;
    progress.seconds = start ? seconds_since(*start) : 0;
    options.progress(progress);
  };
}

// Runs the search with a kernel cache of its own, so that kernels of candidates do not stay in
// memory.
autotune::SearchResult search(const Device::Impl& device, const autotune::Target& target,
                              const autotune::Candidates& candidates, const TuneOptions& options,
                              const tuned::SearchOptions& search, Clock::time_point start,
                              autotune::JournalFile* journal = nullptr, const Beside& beside = {}) {
  jit::KernelCache kernels(device.context, device.compiler, device.disk, device.folders);
  const autotune::TuneJob job{
      target,       candidates, device.context, kernels,      limits_of(device), search,
      options.seed, 0,          journal,        beside.turns, beside.threads};
  return autotune::tune_problem(job, teller(options, start));
}

void check_options(const TuneOptions& options) {
  if (options.time_limit_seconds >= 0) return;
  base::fail(ErrorCode::kInvalidArgument, "a time limit of {} seconds; give 0 for none, or more",
             options.time_limit_seconds);
}

// Throws if there is nothing to tune, or if an option is out of range.
void check_tunable(const Problem& problem, const Selection* selection, const TuneOptions& options) {
  validate(problem);
  if (selection != nullptr) selection::validate(problem, *selection);
  if (problem.batch == 0 || problem.seq_q == 0) {
    base::fail(ErrorCode::kInvalidArgument,
               "a problem with B {} and Sq {} launches nothing, so there is nothing to tune",
               problem.batch, problem.seq_q);
  }
  check_options(options);
}

// The folder where the result will be stored; nullopt if it is kept in memory only. Throws if it
// could not be stored, because a search takes minutes.
std::optional<std::string> check_folder(const Device::Impl& device) {
  std::string problem;
  if (device.lacks_tuned_folder) {
    base::fail(ErrorCode::kFile,
               "tuned results cannot be stored: neither HOME nor XDG_CACHE_HOME is set; set one of "
               "them or ANNULUS_TUNED, or give 'none' to keep results in memory alone");
  }
  if (device.tuned->options().folders.empty()) return std::nullopt;
  std::optional<std::string> folder = device.tuned->writable_folder(&problem);
  if (!folder) base::fail(ErrorCode::kFile, "tuned results cannot be stored: {}", problem);
  return folder;
}

// The device, driver and versions with which results are found on a device.
tuned::Entry::Origin origin_of(const Device::Impl& device) {
  const device::DeviceInfo& info = device.context->info();
  tuned::Entry::Origin origin;
  origin.driver_version = device.info.driver_version;
  origin.nvrtc_version = device.compiler->version();
  origin.clock_mhz = info.clock_kilohertz / 1000;
  origin.memory_clock_mhz = info.memory_clock_kilohertz / 1000;
  return origin;
}

// The number of candidates for which a journal has an answer.
int count_resumed(const tuned::Journal& journal) {
  std::set<std::string> configs;
  for (const tuned::Finding& finding : journal.findings) {
    configs.insert(finding.configs.begin(), finding.configs.end());
  }
  return static_cast<int>(configs.size());
}

// Searches, stores the result and sets *result. `folder` is the result of check_folder.
void search_and_keep(const Device::Impl& device, const autotune::Target& target,
                     const autotune::Candidates& candidates, const TuneOptions& options,
                     const std::optional<std::string>& folder, Clock::time_point start,
                     const std::function<bool()>& stopped, const Beside& beside,
                     TuneResult* result) {
  base::FileSystem files;
  tuned::SearchOptions how;
  how.exhaustive = options.exhaustive;
  how.l2 = options.cold_cache ? tuned::CacheState::kCold : tuned::CacheState::kWarm;
  how.nominated = device.tuned->winners(target.shape, kNominated);
  how.stopped = stopped;
  std::optional<autotune::JournalFile> journal;
  if (folder) {
    journal.emplace(
        files, device.log, *folder, target.shape,
        autotune::subject_of(target, candidates, device.tuned->options().device.identity,
                             device.info.simulated, origin_of(device), how, options.seed));
    result->resumed = count_resumed(journal->before());
  }
  const autotune::SearchResult found = search(device, target, candidates, options, how, start,
                                              journal ? &*journal : nullptr, beside);
  const tuned::Entry entry =
      autotune::entry_of(target, found, device.info.simulated, how.l2, origin_of(device));
  tell(entry, result);
  result->status = found.complete ? TuneStatus::kTuned : TuneStatus::kPartial;
  result->tried = found.tried;
  result->dropped = found.dropped;
  result->slowed = found.slowed;
  result->trials = tell(found.trials);
  // A search that ended before it compared anything has no result to keep.
  if (found.complete || found.tried > 1) {
    // `force` replaces a better result only by a complete one, because a search that ended early
    // has tried fewer configurations.
    const tuned::TunedStore::Stored stored =
        device.tuned->store(entry, options.force && found.complete, [&] {
          // The result contains everything useful in the journal of a complete search.
          if (found.complete && journal) journal->give_up();
        });
    result->path = stored.path;
    if (!device.tuned->options().folders.empty()) {
      result->problem = stored.problem;
      result->file_name = stored.file_name;
      result->file = stored.file;
    }
  }
  // The journal is removed when the result is stored. The journal of a search that ended early is
  // kept.
  if (journal) {
    if (found.complete && result->problem.empty()) journal->end(options.keep_journal);
    result->journal = journal->path();
  }
  // The store may have kept a better result of another process. Then that one is reported.
  if (const auto kept = device.tuned->find_exact(entry.shape)) tell(kept->entry, result);
}

// Nullopt if it was stopped. It may be stopped, because counting the rows of a long problem may
// take minutes.
std::optional<autotune::Target> target_until(const std::function<bool()>& stopped,
                                             const TuneSubject& subject,
                                             const attention::DeviceLimits& limits,
                                             std::uint64_t seed) {
  try {
    const base::Work work({.steps = 0, .cancelled = stopped}, "tuning");
    if (subject.selection == nullptr) return autotune::target_of(subject.problem, limits);
    return autotune::target_of(subject.problem, *subject.selection, limits, seed);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kCancelled) throw;
    return std::nullopt;
  }
}

TuneResult replay_file(const std::string& path,
                       const std::function<void(const TuneProgress&)>& progress) {
  base::FileSystem files;
  const std::vector<std::byte> bytes = base::read_file(files, path, tuned::kMaxJournalBytes);
  std::string why;
  const std::optional<tuned::Journal> journal =
      tuned::decode_journal({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, &why);
  if (!journal) base::fail(ErrorCode::kInvalidFile, "'{}' is not a journal: {}", path, why);
  TuneOptions options;
  options.progress = progress;
  const autotune::SearchResult found = autotune::replay(*journal, teller(options, {}));
  TuneResult result;
  const tuned::Entry entry = autotune::compared(found, journal->predicted, journal->options.l2);
  tell(entry, &result);
  result.default_config = attention::to_string(entry.default_config);
  result.status = found.complete ? TuneStatus::kTuned : TuneStatus::kPartial;
  if (const auto shape = journal->subject.find("shape");
      shape != journal->subject.end() && shape->is_string()) {
    result.shape = shape->get<std::string>();
  }
  result.candidates = static_cast<int>(found.trials.size());
  result.tried = found.tried;
  result.dropped = found.dropped;
  result.slowed = found.slowed;
  result.trials = tell(found.trials);
  result.journal = path;
  result.resumed = count_resumed(*journal);
  return result;
}

// Whether the time is over or the caller has cancelled. All arguments must outlive the result.
std::function<bool()> stopper(const TuneOptions& options, const std::function<bool()>& cancelled,
                              Clock::time_point start) {
  return [&options, &cancelled, start] {
    const bool late =
        options.time_limit_seconds > 0 && seconds_since(start) >= options.time_limit_seconds;
    return late || (cancelled && cancelled());
  };
}

TuneResult tune_target(const Device::Impl& impl, const autotune::Target& target,
                       const TuneOptions& options, const std::function<bool()>& cancelled,
                       const Beside& beside, Clock::time_point start) {
  const attention::DeviceLimits limits = limits_of(impl);
  const std::function<bool()> stopped = stopper(options, cancelled, start);
  TuneResult result;
  result.predicted = impl.info.simulated;
  result.shape = tuned::to_string(target.shape);
  result.default_config = attention::to_string(target.standard);
  result.config = result.default_config;

  // A complete result of an earlier call is returned, unless `force` requires a new search.
  const auto there = impl.tuned->find_exact(target.shape);
  // Ends a call that does not search: plans continue to use the stored result, even if it is
  // partial.
  const auto end = [&](TuneStatus status) {
    if (there) {
      tell(there->entry, &result);
      result.path = there->path;
    }
    result.status = status;
    result.seconds = seconds_since(start);
    return result;
  };
  if (there && there->entry.complete && !options.force) return end(TuneStatus::kAlreadyThere);
  std::optional<std::string> folder;
  if (!options.dry_run) folder = check_folder(impl);
  const auto candidates = autotune::candidates_of(
      target, limits, attention::pipe_device(impl.context->info()), impl.info.simulated, stopped);
  if (candidates) result.candidates = static_cast<int>(candidates->trials.size());
  // A dry run has its result when the candidates are known, even after the time is over. A search
  // has not begun by then. Without candidates, because counting was stopped, neither has a result.
  if (!candidates || (stopped() && !options.dry_run)) return end(TuneStatus::kPartial);
  if (options.dry_run) {
    result.trials = tell(candidates->trials);
    return end(TuneStatus::kPlanned);
  }

  const base::Span span("tune", impl.info.name);
  try {
    search_and_keep(impl, target, *candidates, options, folder, start, stopped, beside, &result);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kCancelled) throw;
    return end(TuneStatus::kPartial);  // before the default was measured
  }
  result.seconds = seconds_since(start);
  impl.context->tally().add(base::Count::tunes);
  impl.context->tally().add(base::Count::tune_micros, std::llround(result.seconds * 1e6));
  return result;
}

}  // namespace

TuneResult tune_until(const Device& device, const TuneSubject& subject, const TuneOptions& options,
                      const std::function<bool()>& cancelled) {
  return tune_on(inside(device), subject, options, cancelled, {});
}

TuneResult tune_on(const Device::Impl& impl, const TuneSubject& subject, const TuneOptions& options,
                   const std::function<bool()>& cancelled, const Beside& beside) {
  const Clock::time_point start = Clock::now();
  check_tunable(subject.problem, subject.selection, options);
  const attention::DeviceLimits limits = limits_of(impl);
  const std::function<bool()> stopped = stopper(options, cancelled, start);
  // Most problems are counted within milliseconds. For these, the stored result is reported even if
  // the time is over.
  constexpr double kLeastSeconds = 1;
  const auto found =
      target_until([&] { return seconds_since(start) >= kLeastSeconds && stopped(); }, subject,
                   limits, options.seed);
  if (!found) {
    TuneResult result;
    result.predicted = impl.info.simulated;
    result.status = TuneStatus::kPartial;
    result.seconds = seconds_since(start);
    return result;
  }
  return tune_target(impl, *found, options, cancelled, beside, start);
}

std::vector<TuneResult> tune_batch_until(const Device& device, const BatchProblem& problem,
                                         const std::vector<StepRequests>& step,
                                         const TuneOptions& options,
                                         const std::function<bool()>& cancelled) {
  return tune_batch_on(inside(device), problem, step, options, cancelled, {});
}

std::vector<TuneResult> tune_batch_on(const Device::Impl& impl, const BatchProblem& problem,
                                      const std::vector<StepRequests>& step,
                                      const TuneOptions& options,
                                      const std::function<bool()>& cancelled,
                                      const Beside& beside) {
  validate(problem);
  check_options(options);
  const attention::DeviceLimits limits = limits_of(impl);
  const Clock::time_point begin = Clock::now();
  TuneOptions of_class = options;
  std::vector<TuneResult> results;
  for (const batch::RequestClass requests : tuned::classes_within(problem)) {
    const Clock::time_point start = Clock::now();
    if (options.time_limit_seconds > 0) {
      constexpr double kNoTime = 1e-9;
      of_class.time_limit_seconds =
          std::max(kNoTime, options.time_limit_seconds - seconds_since(begin));
    }
    tuned::BatchTarget of{problem, {}, requests, {}};
    of.step = step.empty() ? autotune::default_step(problem, requests)
                           : tuned::requests_of(step, problem, requests);
    if (of.step.empty()) continue;
    results.push_back(
        tune_target(impl, autotune::target_of(of, limits), of_class, cancelled, beside, start));
  }
  return results;
}

TunedNote measure_again(const Device& device, const tuned::Entry& entry, std::uint64_t seed,
                        const std::function<bool()>& cancelled) {
  const Device::Impl& impl = inside(device);
  TunedNote note;
  note.verdict = TunedVerdict::kNotMeasured;
  std::optional<autotune::Target> target;
  try {
    // A file may hold any problem, including one whose rows take hours to count.
    const base::Work work({.cancelled = cancelled}, "reading the problem of a tuned result");
    target = autotune::stated_target(entry, limits_of(impl), seed);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kCancelled) throw;
    note.text = error.what();
    return note;
  }
  const attention::KernelConfig& standard = target->standard;
  if (entry.config == standard) {
    note.verdict = TunedVerdict::kHolds;
    note.text = "it is the heuristic's choice";
    return note;
  }
  TuneOptions options;
  options.seed = seed;
  tuned::SearchOptions how;
  how.exhaustive = true;
  how.first_rounds = how.quick_rounds;  // also for slow configurations, which have to be measured
                                        // reliably
  how.l2 = entry.cold_cache ? tuned::CacheState::kCold : tuned::CacheState::kWarm;
  how.stopped = cancelled;
  autotune::Candidates both;
  both.trials = {{.config = standard}, {.config = entry.config}};
  try {
    const autotune::SearchResult found = search(impl, *target, both, options, how, Clock::now());
    const tuned::Trial& trial = found.trials[1];
    const bool dropped = trial.outcome == tuned::Trial::Outcome::kDropped;
    if (trial.outcome == tuned::Trial::Outcome::kNotTried) {
      base::fail(ErrorCode::kCancelled, "measuring was ended");
    }
    note.verdict = dropped || trial.ratio.low > 1 ? TunedVerdict::kFails
                   : trial.ratio.high < 1         ? TunedVerdict::kHolds
                                                  : TunedVerdict::kWeaker;
    note.text = dropped
                    ? trial.reason
                    : fmt::format(
                          "{:.3f} of the {} of {} ({:.3f} to {:.3f}); {:.3f} ({:.3f} to "
                          "{:.3f}) were kept",
                          trial.ratio.middle, impl.info.simulated ? "cycles" : "time",
                          attention::to_string(standard), trial.ratio.low, trial.ratio.high,
                          static_cast<double>(entry.time) / static_cast<double>(entry.default_time),
                          static_cast<double>(entry.ratio_low_ppm) / 1e6,
                          static_cast<double>(entry.ratio_high_ppm) / 1e6);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kOutOfMemory) throw;
    note.text = error.what();
  }
  return note;
}

}  // namespace api

inline namespace v0 {

TuneResult replay_tuning(const std::string& journal,
                         const std::function<void(const TuneProgress&)>& progress) {
  return api::replay_file(journal, progress);
}

std::vector<TuneResult> tune_batch(const Device& device, const BatchProblem& problem,
                                   const std::vector<StepRequests>& step,
                                   const TuneOptions& options) {
  return api::tune_batch_until(device, problem, step, options,
                               [&] { return options.cancel != nullptr && options.cancel->load(); });
}

TuneResult tune(const Device& device, const Problem& problem, const TuneOptions& options) {
  return api::tune_until(device, {problem}, options,
                         [&] { return options.cancel != nullptr && options.cancel->load(); });
}

TuneResult tune(const Device& device, const Problem& problem, const Selection& selection,
                const TuneOptions& options) {
  return api::tune_until(device, {problem, &selection}, options,
                         [&] { return options.cancel != nullptr && options.cancel->load(); });
}

}  // namespace v0
}  // namespace annulus
