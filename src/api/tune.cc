// The public face of the tuner: what is looked up, where results go, and how they are told.
#include "annulus/tune.h"

#include <chrono>

#include "api/impl.h"
#include "autotune/listing.h"
#include "autotune/tuner.h"
#include "base/fail.h"

namespace annulus {
namespace api {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string name_of(const std::optional<attention::KernelConfig>& config) {
  return config ? attention::to_string(*config) : std::string();
}

// Times as they are told: cycles, or microseconds that are kept as nanoseconds.
double told(std::int64_t time, bool predicted) {
  return static_cast<double>(time) / (predicted ? 1.0 : 1e3);
}

std::string outcome_of(const autotune::Trial& trial) {
  switch (trial.outcome) {
    case autotune::Trial::Outcome::kNotTried:
      return "not tried";
    case autotune::Trial::Outcome::kDropped:
      return trial.reason;
    case autotune::Trial::Outcome::kTried:
      return "tried";
  }
  return "unknown outcome";
}

std::vector<TuneCandidate> tell(const std::vector<autotune::Trial>& trials) {
  std::vector<TuneCandidate> all;
  for (const autotune::Trial& trial : trials) {
    TuneCandidate candidate{attention::to_string(trial.config), trial.predicted, outcome_of(trial),
                            0, 0};
    if (trial.outcome == autotune::Trial::Outcome::kTried) {
      candidate.time = trial.time;
      candidate.ratio = trial.ratio.middle;
    }
    all.push_back(std::move(candidate));
  }
  return all;
}

void tell(const autotune::Entry& entry, TuneResult* result) {
  result->config = attention::to_string(entry.config);
  result->runner_up = name_of(entry.runner_up);
  result->predicted = entry.predicted;
  result->time = told(entry.time, entry.predicted);
  result->default_time = told(entry.default_time, entry.predicted);
  result->ratio = result->time / result->default_time;
  result->ratio_low = static_cast<double>(entry.ratio_low_ppm) / 1e6;
  result->ratio_high = static_cast<double>(entry.ratio_high_ppm) / 1e6;
}

std::function<void(const autotune::SearchProgress&)> teller(const TuneOptions& options,
                                                            Clock::time_point start) {
  if (!options.progress) return {};
  return [&options, start](const autotune::SearchProgress& at) {
    TuneProgress progress;
    progress.done = at.tried;
    progress.candidates = at.candidates;
    progress.config = attention::to_string(at.last->config);
    progress.outcome = outcome_of(*at.last);
    progress.best = attention::to_string(at.best->config);
    progress.best_ratio = at.best->ratio.middle;
    progress.seconds = seconds_since(start);
    options.progress(progress);
  };
}

// The search itself, with kernels of its own: what is not chosen does not stay in memory.
autotune::SearchResult search(const Device::Impl& device, const Problem& problem,
                              const autotune::Candidates& candidates, const TuneOptions& options,
                              Clock::time_point start, const std::function<bool()>& stopped) {
  jit::KernelCache kernels(device.context, device.compiler, device.disk);
  const autotune::TuneJob job{problem,
                              candidates,
                              device.context,
                              kernels,
                              limits_of(device),
                              {.exhaustive = options.exhaustive, .stopped = stopped},
                              options.cold_cache,
                              options.seed};
  return autotune::tune_problem(job, teller(options, start));
}

}  // namespace
}  // namespace api

inline namespace v0 {

TuneResult tune(const Device& device, const Problem& problem, const TuneOptions& options) {
  const api::Clock::time_point start = api::Clock::now();
  const Device::Impl& impl = api::inside(device);
  validate(problem);
  if (problem.batch == 0 || problem.seq_q == 0) {
    base::fail(ErrorCode::kInvalidArgument,
               "a problem with B {} and Sq {} launches nothing, so there is nothing to tune",
               problem.batch, problem.seq_q);
  }
  if (!(options.time_limit_seconds >= 0)) {
    base::fail(ErrorCode::kInvalidArgument, "a time limit of {} seconds; give 0 for none, or more",
               options.time_limit_seconds);
  }
  const autotune::ShapeKey shape = autotune::shape_key(problem);
  const attention::DeviceLimits limits = api::limits_of(impl);
  TuneResult result;
  result.shape = autotune::to_string(shape);
  result.predicted = impl.info.simulated;
  result.default_config = attention::to_string(attention::choose_config(problem, limits).config);
  result.config = result.default_config;

  const auto there = impl.tuned->find_exact(shape);
  if (there && there->entry.complete && !options.force) {
    api::tell(there->entry, &result);
    result.status = TuneStatus::kAlreadyThere;
    result.path = there->path;
    result.seconds = api::seconds_since(start);
    return result;
  }
  std::string problem_text;
  if (!options.dry_run && !impl.tuned->options().folders.empty() &&
      !impl.tuned->writable_folder(&problem_text)) {
    base::fail(ErrorCode::kFile, "tuned results cannot be kept: {}", problem_text);
  }
  const auto stopped = [&] {
    const bool late =
        options.time_limit_seconds > 0 && api::seconds_since(start) >= options.time_limit_seconds;
    return late || (options.cancel != nullptr && options.cancel->load());
  };
  const auto candidates = autotune::candidates_of(
      problem, limits, attention::pipe_device(impl.context->info()), impl.info.simulated, stopped);
  if (candidates) result.candidates = static_cast<int>(candidates->trials.size());
  if (!candidates || (stopped() && !options.dry_run)) {
    result.status = TuneStatus::kPartial;
    result.seconds = api::seconds_since(start);
    return result;
  }
  if (options.dry_run) {
    result.status = TuneStatus::kPlanned;
    result.trials = api::tell(candidates->trials);
    result.seconds = api::seconds_since(start);
    return result;
  }

  const autotune::SearchResult found =
      api::search(impl, problem, *candidates, options, start, stopped);
  const autotune::Entry entry =
      autotune::entry_of(problem, found, impl.info.simulated, impl.info.driver_version);
  api::tell(entry, &result);
  result.status = found.complete ? TuneStatus::kTuned : TuneStatus::kPartial;
  result.tried = found.tried;
  result.dropped = found.dropped;
  result.trials = api::tell(found.trials);
  // A search that was cut short before it compared anything has nothing to keep.
  if (found.complete || found.tried > 1) {
    const autotune::TunedStore::Stored stored = impl.tuned->store(entry, options.force);
    result.path = stored.path;
    if (!impl.tuned->options().folders.empty()) result.problem = stored.problem;
  }
  // What stays may be a better result of another process.
  if (const auto kept = impl.tuned->find_exact(shape)) api::tell(kept->entry, &result);
  result.seconds = api::seconds_since(start);
  return result;
}

TunedListing list_tuned(const std::optional<std::string>& tuned_path) {
  TunedListing told;
  told.folders =
      autotune::split_path(tuned_path.value_or(base::default_tuned_path(base::read_environment())));
  base::FileSystem files;
  autotune::Listing listing = autotune::list_entries(files, told.folders);
  told.ignored = std::move(listing.ignored);
  for (autotune::ListedEntry& listed : listing.entries) {
    const autotune::Entry& entry = listed.entry;
    const autotune::Entry::Origin& origin = entry.origin;
    TunedEntry each;
    each.path = std::move(listed.path);
    each.device = std::move(listed.device);
    each.shape = autotune::to_string(entry.shape);
    each.config = attention::to_string(entry.config);
    each.runner_up = api::name_of(entry.runner_up);
    each.predicted = entry.predicted;
    each.complete = entry.complete;
    each.time = api::told(entry.time, entry.predicted);
    each.default_time = api::told(entry.default_time, entry.predicted);
    each.ratio_low = static_cast<double>(entry.ratio_low_ppm) / 1e6;
    each.ratio_high = static_cast<double>(entry.ratio_high_ppm) / 1e6;
    each.rounds = entry.rounds;
    each.candidates = entry.candidates;
    each.library_version = origin.library_version;
    each.driver_version = origin.driver_version;
    each.when = origin.when;
    each.batch = origin.batch;
    each.heads = origin.heads;
    each.kv_heads = origin.kv_heads;
    each.seq_q = origin.seq_q;
    each.seq_k = origin.seq_k;
    told.entries.push_back(std::move(each));
  }
  return told;
}

}  // namespace v0
}  // namespace annulus
