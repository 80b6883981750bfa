// The C interface of tuning. Each function converts its arguments and calls annulus/tune.h.
#include "annulus/c_tools.h"
#include "annulus/c_tune.h"

#include "annulus/tune.h"
#include "api/tune_until.h"
#include "base/fail.h"
#include "c_api/functions.h"
#include "c_api/objects.h"
#include "c_api/problems.h"
#include "c_api/tuned_entry.h"
#include "tuned/batch_key.h"

namespace annulus::c_api {
namespace {

static_assert(ANNULUS_TUNED == static_cast<int>(TuneStatus::kTuned));
static_assert(ANNULUS_TUNE_PARTIAL == static_cast<int>(TuneStatus::kPartial));
static_assert(ANNULUS_TUNED_ALREADY == static_cast<int>(TuneStatus::kAlreadyThere));
static_assert(ANNULUS_TUNE_PLANNED == static_cast<int>(TuneStatus::kPlanned));

constexpr StructName kTuneOptions = {"annulus_tune_options", "ANNULUS_TUNE_OPTIONS_INIT"};
constexpr StructName kTuneResult = {"annulus_tune_result", "ANNULUS_TUNE_RESULT_INIT"};
constexpr StructName kTuneTrial = {"annulus_tune_trial", "ANNULUS_TUNE_TRIAL_INIT"};
constexpr StructName kTunedInfo = {"annulus_tuned_info", "ANNULUS_TUNED_INFO_INIT"};

std::function<void(const TuneProgress&)> teller_of(annulus_tune_callback call, void* user) {
  if (call == nullptr) return {};
  return [call, user](const TuneProgress& at) {
    const annulus_tune_progress progress = {sizeof progress,
                                            at.done,
                                            at.candidates,
                                            at.config.c_str(),
                                            at.outcome.c_str(),
                                            at.best.c_str(),
                                            at.best_ratio,
                                            at.seconds,
                                            at.most};
    call(user, &progress);
  };
}

TuneOptions options_of(const annulus_tune_options& c) {
  TuneOptions options;
  options.time_limit_seconds = c.time_limit_seconds;
  options.exhaustive = truth("exhaustive", c.exhaustive);
  options.force = truth("force", c.force);
  options.dry_run = truth("dry_run", c.dry_run);
  options.cold_cache = truth("cold_cache", c.cold_cache);
  options.seed = c.seed;
  options.keep_journal = truth("keep_journal", c.keep_journal);
  options.progress = teller_of(c.progress, c.progress_user);
  return options;
}

struct TuningObject {
  TuneResult result;
};
HandleTable<TuningObject>& tunings() {
  static auto* table = new HandleTable<TuningObject>("tuning", 0x8b);
  return *table;
}
using TuningPin = HandleTable<TuningObject>::Pin;

annulus_tune_options read_options(const annulus_tune_options* given) {
  const annulus_tune_options defaults = ANNULUS_TUNE_OPTIONS_INIT;
  return given == nullptr ? defaults : read_struct(kTuneOptions, given, defaults);
}

void give_tuning(const Device& device, const TuneSubject& subject,
                 const annulus_tune_options* given, annulus_tuning** tuning) {
  const annulus_tune_options c = read_options(given);
  give(tuning, tunings(),
       std::make_unique<TuningObject>(
           TuningObject{tune_until(device, subject, options_of(c), cancelled_by(c.cancel))}));
}

// Makes a handle of each result, or of no result if there is no memory for all handles.
void give_tunings(std::vector<TuneResult> results, annulus_tuning** to, std::size_t* count) {
  std::size_t made = 0;
  try {
    for (TuneResult& result : results) {
      give(&to[made], tunings(), std::make_unique<TuningObject>(TuningObject{std::move(result)}));
      ++made;
    }
  } catch (...) {
    while (made > 0) tunings().erase(number(std::exchange(to[--made], nullptr)));
    throw;
  }
  *count = made;
}

// Each entry is at least one request, so a larger count cannot be the count of a real array.
std::vector<StepRequests> step_of(const annulus_step_requests* step, std::size_t count,
                                  const BatchBounds& most) {
  if (count > 0) check_pointer("step", step);
  if (count > static_cast<std::size_t>(most.requests)) {
    base::fail(ErrorCode::kInvalidArgument,
               "a step of {} entries is not within the bounds, as each is at least one request of "
               "up to {}",
               count, most.requests);
  }
  std::vector<StepRequests> all;
  for (std::size_t i = 0; i < count; ++i) {
    all.push_back({step[i].requests, step[i].queries, step[i].keys});
  }
  return all;
}

// The texts belong to the result, which must outlive them.
annulus_tune_result to_c(const TuneResult& result) {
  annulus_tune_result c = ANNULUS_TUNE_RESULT_INIT;
  c.shape = result.shape.c_str();
  c.config = result.config.c_str();
  c.default_config = result.default_config.c_str();
  c.runner_up = result.runner_up.c_str();
  c.path = result.path.c_str();
  c.problem = result.problem.c_str();
  c.file_name = result.file_name.c_str();
  c.file = result.file.c_str();
  c.journal = result.journal.c_str();
  c.resumed = result.resumed;
  c.other_ratio = result.other_ratio;
  c.repeated_rounds = result.repeated_rounds;
  c.slowed = result.slowed ? 1 : 0;
  c.time = result.time;
  c.default_time = result.default_time;
  c.ratio = result.ratio;
  c.ratio_low = result.ratio_low;
  c.ratio_high = result.ratio_high;
  c.seconds = result.seconds;
  c.candidates = result.candidates;
  c.tried = result.tried;
  c.dropped = result.dropped;
  c.trials = result.trials.size();
  c.status = static_cast<std::int32_t>(result.status);
  c.predicted = result.predicted ? 1 : 0;
  return c;
}

constexpr StructName kBackgroundOptions = {"annulus_background_tuning_options",
                                           "ANNULUS_BACKGROUND_TUNING_OPTIONS_INIT"};
constexpr StructName kBackgroundStatus = {"annulus_background_tuning_status",
                                          "ANNULUS_BACKGROUND_TUNING_STATUS_INIT"};
using BackgroundState = BackgroundTuningStatus::State;
static_assert(ANNULUS_BACKGROUND_TUNING == static_cast<int>(BackgroundState::kTuning));
static_assert(ANNULUS_BACKGROUND_TUNING_PAUSED == static_cast<int>(BackgroundState::kPaused));
static_assert(ANNULUS_BACKGROUND_TUNING_IDLE == static_cast<int>(BackgroundState::kIdle));
static_assert(ANNULUS_BACKGROUND_TUNING_ENDED == static_cast<int>(BackgroundState::kEnded));

BackgroundTuningOptions options_of(const annulus_background_tuning_options& c) {
  BackgroundTuningOptions options;
  if (c.problem_count > 0) check_pointer("problems", c.problems);
  for (std::size_t i = 0; i < c.problem_count; ++i) {
    options.problems.push_back(problem_of(c.problems[i]));
  }
  if (c.batch_count > 0) check_pointer("batches", c.batches);
  for (std::size_t i = 0; i < c.batch_count; ++i) {
    options.batches.push_back(batch_problem_of(c.batches[i]));
  }
  if (c.may_measure != nullptr) {
    options.may_measure = [call = c.may_measure, user = c.user] { return call(user) != 0; };
  }
  if (c.measured != nullptr) options.measured = [call = c.measured, user = c.user] { call(user); };
  options.progress = teller_of(c.progress, c.user);
  if (c.tuned != nullptr) {
    const auto told = [call = c.tuned, user = c.user](const auto&, const TuneResult& result) {
      annulus_tune_result to = to_c(result);
      to.trials = 0;
      call(user, &to);
    };
    options.tuned = told;
    options.tuned_batch = told;
  }
  options.executor = executor_of(c.execute, c.user);
  options.ask_again_seconds = c.ask_again_seconds;
  options.time_limit_seconds = c.time_limit_seconds;
  if (c.threads < 0 || c.threads > 1024) {
    base::fail(ErrorCode::kInvalidArgument, "threads is {}; give up to 1024, or 0 for all",
               c.threads);
  }
  options.threads = static_cast<int>(c.threads);
  return options;
}

struct BackgroundObject {
  BackgroundObject(const Device& device, const BackgroundTuningOptions& options)
      : tuning(device, options) {}
  BackgroundTuning tuning;
  KeptTexts errors;
};
HandleTable<BackgroundObject>& background_tunings() {
  static auto* table = new HandleTable<BackgroundObject>("background tuning", 0xb3);
  return *table;
}
using BackgroundPin = HandleTable<BackgroundObject>::Pin;

struct ListObject {
  explicit ListObject(TunedListing read)
      : listing(std::move(read)),
        folders(lines(listing.folders)),
        ignored(lines(listing.ignored)) {}
  TunedListing listing;
  std::string folders;  // one per line
  std::string ignored;
};
HandleTable<ListObject>& lists() {
  static auto* table = new HandleTable<ListObject>("list of tuned results", 0x9d);
  return *table;
}
using ListPin = HandleTable<ListObject>::Pin;

constexpr StructName kTuningReportInfo = {"annulus_tuning_report_info",
                                          "ANNULUS_TUNING_REPORT_INFO_INIT"};

struct TuningReportObject {
  explicit TuningReportObject(TuningReport made)
      : report(std::move(made)), left_out(lines(report.left_out)) {}
  TuningReport report;
  std::string left_out;  // one per line
};
HandleTable<TuningReportObject>& tuning_reports() {
  static auto* table = new HandleTable<TuningReportObject>("report of tuning", 0x65);
  return *table;
}
using TuningReportPin = HandleTable<TuningReportObject>::Pin;

}  // namespace

annulus_tuned_entry to_c(const TunedEntry& entry) {
  annulus_tuned_entry c = ANNULUS_TUNED_ENTRY_INIT;
  c.path = entry.path.c_str();
  c.device = entry.device.c_str();
  c.shape = entry.shape.c_str();
  c.kind = entry.kind.c_str();
  c.config = entry.config.c_str();
  c.runner_up = entry.runner_up.c_str();
  c.time = entry.time;
  c.default_time = entry.default_time;
  c.ratio_low = entry.ratio_low;
  c.ratio_high = entry.ratio_high;
  c.rounds = entry.rounds;
  c.cold_cache = entry.cold_cache ? 1 : 0;
  c.other_ratio = entry.other_ratio;
  c.repeated_rounds = entry.repeated_rounds;
  c.candidates = entry.candidates;
  c.when = entry.when;
  c.batch = entry.batch;
  c.heads = entry.heads;
  c.kv_heads = entry.kv_heads;
  c.seq_q = entry.seq_q;
  c.seq_k = entry.seq_k;
  c.predicted = entry.predicted ? 1 : 0;
  c.complete = entry.complete ? 1 : 0;
  c.library_version = entry.library_version;
  c.driver_version = entry.driver_version;
  c.name = entry.name.c_str();
  c.outdated = entry.outdated.c_str();
  c.default_config = entry.default_config.c_str();
  c.pattern = entry.pattern.c_str();
  c.packed = entry.packed ? 1 : 0;
  c.nvrtc_version = entry.nvrtc_version;
  c.clock_mhz = entry.clock_mhz;
  c.memory_clock_mhz = entry.memory_clock_mhz;
  return c;
}

}  // namespace annulus::c_api

extern "C" {

annulus_status annulus_tuning_create(annulus_device* device, const annulus_problem* problem,
                                     const annulus_tune_options* given, annulus_tuning** tuning) {
  return guarded([&] {
    const DevicePin pin(devices(), number(device));
    check_pointer("tuning (where the handle goes)", tuning);
    const Problem read = problem_of(problem);
    const annulus_selection* const chosen = read_options(given).selection;
    const std::optional<Selection> selection =
        chosen == nullptr ? std::nullopt : std::optional(selection_of(chosen));
    give_tuning(pin->device, {read, selection ? &*selection : nullptr}, given, tuning);
  });
}

annulus_status annulus_tuning_create_batch(annulus_device* device,
                                           const annulus_batch_problem* problem,
                                           const annulus_step_requests* step, size_t step_count,
                                           const annulus_tune_options* given,
                                           annulus_tuning** tunings, size_t room, size_t* count) {
  return guarded([&] {
    const DevicePin pin(devices(), number(device));
    check_pointer("tunings (where the handles go)", tunings);
    check_pointer("count (where the number goes)", count);
    const BatchProblem read = batch_problem_of(problem);
    const annulus_tune_options c = read_options(given);
    if (c.selection != nullptr) {
      base::fail(ErrorCode::kUnsupported,
                 "annulus_tune_options.selection is set, but kernels of batches have no selection; "
                 "pass NULL");
    }
    validate(read);
    const std::size_t classes = tuned::classes_within(read).size();
    if (room < classes) {
      base::fail(ErrorCode::kInvalidArgument,
                 "there is memory for {} tunings, but the batch has {} classes of requests; give "
                 "ANNULUS_REQUEST_CLASSES",
                 room, classes);
    }
    give_tunings(tune_batch_until(pin->device, read, step_of(step, step_count, read.most),
                                  options_of(c), cancelled_by(c.cancel)),
                 tunings, count);
  });
}

annulus_status annulus_tuning_replay(const char* journal, annulus_tune_callback progress,
                                     void* progress_user, annulus_tuning** tuning) {
  return guarded([&] {
    check_pointer("journal", journal);
    check_pointer("tuning (where the handle goes)", tuning);
    give(tuning, tunings(),
         std::make_unique<TuningObject>(
             TuningObject{replay_tuning(journal, teller_of(progress, progress_user))}));
  });
}

annulus_status annulus_tuning_destroy(annulus_tuning* tuning) {
  return guarded([&] { tunings().erase(number(tuning)); });
}

annulus_status annulus_tuning_get(annulus_tuning* tuning, annulus_tune_result* to) {
  return guarded([&] {
    const TuningPin pin(tunings(), number(tuning));
    write_struct(kTuneResult, to, to_c(pin->result));
  });
}

annulus_status annulus_tuning_get_trial(annulus_tuning* tuning, size_t index,
                                        annulus_tune_trial* to) {
  return guarded([&] {
    const TuningPin pin(tunings(), number(tuning));
    const std::vector<TuneCandidate>& trials = pin->result.trials;
    if (index >= trials.size()) {
      base::fail(ErrorCode::kInvalidArgument, "trial {} of {}", index, trials.size());
    }
    annulus_tune_trial c = ANNULUS_TUNE_TRIAL_INIT;
    c.config = trials[index].config.c_str();
    c.outcome = trials[index].outcome.c_str();
    c.model_cycles = trials[index].model_cycles;
    c.time = trials[index].time;
    c.ratio = trials[index].ratio;
    write_struct(kTuneTrial, to, c);
  });
}

annulus_status annulus_background_tuning_create(annulus_device* device,
                                                const annulus_background_tuning_options* given,
                                                annulus_background_tuning** tuning) {
  return guarded([&] {
    const DevicePin pin(devices(), number(device));
    check_pointer("tuning (where the handle goes)", tuning);
    const annulus_background_tuning_options defaults = ANNULUS_BACKGROUND_TUNING_OPTIONS_INIT;
    const annulus_background_tuning_options c =
        given == nullptr ? defaults : read_struct(kBackgroundOptions, given, defaults);
    give(tuning, background_tunings(),
         std::make_unique<BackgroundObject>(pin->device, options_of(c)));
  });
}

annulus_status annulus_background_tuning_destroy(annulus_background_tuning* tuning) {
  return guarded([&] {
    {
      // Another thread may be inside a call with the handle, such as a wait. Then erasing the
      // handle does not end the tuning.
      const BackgroundPin pin(background_tunings(), number(tuning));
      try {
        pin->tuning.cancel();
        pin->tuning.wait();
      } catch (const Error&) {  // in a child after fork, or in a callback, its destructor ends it
      }
    }
    background_tunings().erase(number(tuning));
  });
}

annulus_status annulus_background_tuning_pause(annulus_background_tuning* tuning) {
  return guarded([&] { BackgroundPin(background_tunings(), number(tuning))->tuning.pause(); });
}

annulus_status annulus_background_tuning_resume(annulus_background_tuning* tuning) {
  return guarded([&] { BackgroundPin(background_tunings(), number(tuning))->tuning.resume(); });
}

annulus_status annulus_background_tuning_wait(annulus_background_tuning* tuning, double seconds,
                                              int32_t* done) {
  return guarded([&] {
    const bool all = BackgroundPin(background_tunings(), number(tuning))->tuning.wait(seconds);
    if (done != nullptr) *done = all ? 1 : 0;
  });
}

annulus_status annulus_background_tuning_cancel(annulus_background_tuning* tuning) {
  return guarded([&] { BackgroundPin(background_tunings(), number(tuning))->tuning.cancel(); });
}

annulus_status annulus_background_tuning_get_status(annulus_background_tuning* tuning,
                                                    annulus_background_tuning_status* to) {
  return guarded([&] {
    const BackgroundPin pin(background_tunings(), number(tuning));
    const BackgroundTuningStatus now = pin->tuning.status();
    annulus_background_tuning_status c = ANNULUS_BACKGROUND_TUNING_STATUS_INIT;
    c.state = static_cast<std::int64_t>(now.state);
    c.tuned = now.tuned;
    c.partial = now.partial;
    c.already_there = now.already_there;
    c.failed = now.failed;
    c.measurements = now.measurements;
    c.refusals = now.refusals;
    c.last_error = pin->errors.keep(now.last_error);
    write_struct(kBackgroundStatus, to, c);
  });
}

annulus_status annulus_tuned_list_read(const char* tuned_path, annulus_tuned_list** list) {
  return guarded([&] {
    check_pointer("list (where the handle goes)", list);
    std::optional<std::string> path;
    if (tuned_path != nullptr) path = tuned_path;
    give(list, lists(), std::make_unique<ListObject>(list_tuned(path)));
  });
}

annulus_status annulus_tuned_list_destroy(annulus_tuned_list* list) {
  return guarded([&] { lists().erase(number(list)); });
}

annulus_status annulus_tuned_list_get(annulus_tuned_list* list, annulus_tuned_info* to) {
  return guarded([&] {
    const ListPin pin(lists(), number(list));
    annulus_tuned_info c = ANNULUS_TUNED_INFO_INIT;
    c.folders = pin->folders.c_str();
    c.ignored = pin->ignored.c_str();
    c.entries = pin->listing.entries.size();
    write_struct(kTunedInfo, to, c);
  });
}

annulus_status annulus_tuned_list_get_entry(annulus_tuned_list* list, size_t index,
                                            annulus_tuned_entry* to) {
  return guarded([&] {
    const ListPin pin(lists(), number(list));
    const std::vector<TunedEntry>& entries = pin->listing.entries;
    if (index >= entries.size()) {
      base::fail(ErrorCode::kInvalidArgument, "entry {} of {}", index, entries.size());
    }
    write_struct(kTunedEntry, to, to_c(entries[index]));
  });
}

annulus_status annulus_tuning_report_make(const char* const* paths, size_t count,
                                          const char* tuned_path, annulus_tuning_report** report) {
  return guarded([&] {
    check_pointer("report (where the handle goes)", report);
    if (count > 0) check_pointer("paths", paths);
    std::vector<std::string> all;
    for (size_t i = 0; i < count; ++i) {
      check_pointer("a path of paths", paths[i]);
      all.emplace_back(paths[i]);
    }
    std::optional<std::string> path;
    if (tuned_path != nullptr) path = tuned_path;
    give(report, tuning_reports(), std::make_unique<TuningReportObject>(tuning_report(all, path)));
  });
}

annulus_status annulus_tuning_report_destroy(annulus_tuning_report* report) {
  return guarded([&] { tuning_reports().erase(number(report)); });
}

annulus_status annulus_tuning_report_get(annulus_tuning_report* report,
                                         annulus_tuning_report_info* to) {
  return guarded([&] {
    const TuningReportPin pin(tuning_reports(), number(report));
    annulus_tuning_report_info c = ANNULUS_TUNING_REPORT_INFO_INIT;
    c.json = pin->report.json.c_str();
    c.left_out = pin->left_out.c_str();
    c.searches = pin->report.searches;
    c.entries = pin->report.entries;
    write_struct(kTuningReportInfo, to, c);
  });
}

}  // extern "C"
