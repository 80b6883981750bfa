// Tuning while the host continues to work. A build with ANNULUS_TUNER=OFF has tune_left_out.cc in
// place of this file.
#include <algorithm>
#include <cmath>
#include <exception>
#include <new>
#include <system_error>
#include <utility>

#include "api/tune_until.h"
#include "api/tuning_work.h"
#include "base/fail.h"
#include "base/no_signals.h"
#include "device/capture_mode.h"

namespace annulus {
namespace api {
namespace {

// The longest time until a new problem of the host is noticed.
constexpr std::chrono::milliseconds kLook{200};

std::chrono::steady_clock::duration duration_of(double seconds) {
  using Duration = std::chrono::steady_clock::duration;
  constexpr double kYear = 365.0 * 24 * 3600;  // practically no limit, and no clock overflows
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(std::min(seconds, kYear)));
}

void check(const BackgroundTuningOptions& options) {
  if (!(options.ask_again_seconds > 0)) {
    base::fail(ErrorCode::kInvalidArgument,
               "ask_again_seconds is {}; give the seconds to wait after may_measure returned "
               "false, more than 0",
               options.ask_again_seconds);
  }
  if (!(options.time_limit_seconds >= 0)) {
    base::fail(ErrorCode::kInvalidArgument, "a time limit of {} seconds; give 0 for none, or more",
               options.time_limit_seconds);
  }
  if (options.threads < 0) {
    base::fail(ErrorCode::kInvalidArgument,
               "background tuning on {} threads; give 0 for one per processor, or more",
               options.threads);
  }
  for (const Problem& problem : options.problems) validate(problem);
  for (const BatchProblem& batch : options.batches) validate(batch);
}

}  // namespace

TuningWork::TuningWork(const Device::Impl& device, BackgroundTuningOptions options)
    : device_(device), options_(std::move(options)) {
  check(options_);
  if (takes_planned()) {
    keeper_.emplace(device_.shape_counts);
    device_.counts_shapes = true;
  }
}

void TuningWork::start(const std::shared_ptr<TuningWork>& work) {
  if (work->options_.executor) {
    base::Background(work->options_.executor)
        .start([work] { work->run(); }, [work] { work->refuse(); });
    return;
  }
  const base::NoSignals none;
  try {
    work->thread_ = std::thread([work] { work->run(); });
  } catch (const std::system_error& error) {
    base::fail(ErrorCode::kOutOfMemory, "the system refuses a thread to tune on: {}", error.what());
  }
}

void TuningWork::refuse() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  status_.last_error = "the host's executor dropped the task";
  changed_.notify_all();
}

void TuningWork::stop() {
  const std::lock_guard joining(joining_);
  keeper_.reset();
  {
    std::unique_lock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
    if (!running_) {
      ended_ = true;  // a task that comes later does nothing
    } else if (runs_on_ == std::this_thread::get_id()) {
      if (thread_.joinable()) thread_.detach();
      return;
    }
    changed_.wait(lock, [&] { return !running_; });
  }
  if (thread_.joinable()) thread_.join();
}

bool TuningWork::runs_here() const {
  const std::lock_guard lock(mutex_);
  return runs_on_ == std::this_thread::get_id();
}

void TuningWork::cancel() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  if (!running_) ended_ = true;  // a task that starts later does nothing
  changed_.notify_all();
}

void TuningWork::pause() {
  std::unique_lock lock(mutex_);
  ++pauses_;
  if (runs_on_ == std::this_thread::get_id()) return;
  changed_.wait(lock, [&] { return !measuring_; });
}

void TuningWork::resume() {
  const std::lock_guard lock(mutex_);
  if (pauses_ == 0) {
    base::fail(ErrorCode::kInvalidArgument,
               "resume() of a background tuning that is not paused; call pause() before it");
  }
  --pauses_;
  changed_.notify_all();
}

bool TuningWork::nothing_left() const {
  return ended_ || (looked_at_ >= 0 && looked_at_ == device_.shape_counts->kept());
}

bool TuningWork::wait(double seconds) {
  if (std::isnan(seconds)) {
    base::fail(ErrorCode::kInvalidArgument,
               "a wait of NaN seconds; give a number, or a negative one for no end");
  }
  std::unique_lock lock(mutex_);
  if (runs_on_ == std::this_thread::get_id()) {
    base::fail(
        ErrorCode::kInvalidArgument,
        "a callback of a background tuning waits for the tuning, which waits for the callback; "
        "wait on another thread");
  }
  woken_ = true;
  changed_.notify_all();
  const auto ended = [&] { return nothing_left(); };
  if (seconds >= 0) return changed_.wait_for(lock, duration_of(seconds), ended);
  changed_.wait(lock, ended);
  return true;
}

BackgroundTuningStatus TuningWork::status() const {
  const std::lock_guard lock(mutex_);
  BackgroundTuningStatus status = status_;
  using State = BackgroundTuningStatus::State;
  status.state = ended_            ? State::kEnded
                 : pauses_ > 0     ? State::kPaused
                 : looked_at_ >= 0 ? State::kIdle
                                   : State::kTuning;
  return status;
}

void TuningWork::note(const std::string& text) {
  device_.noted->write_once(device_.log, text.substr(0, text.find('\n')));
}

// Calls a function of the host. An exception of that function does not end the search.
template <typename Call>
void TuningWork::tell(const char* name, const Call& call) {
  try {
    call();
  } catch (const std::exception& error) {
    note(fmt::format("'{}' of a background tuning threw: {}", name, error.what()));
  } catch (...) {
    note(fmt::format("'{}' of a background tuning threw", name));
  }
}

void TuningWork::begin() {
  const Clock::time_point start = Clock::now();
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || pauses_ == 0; });
    if (stopping_) base::fail(ErrorCode::kCancelled, "background tuning was ended");
    if (!options_.may_measure) break;
    lock.unlock();
    bool may = false;
    tell("may_measure", [&] { may = options_.may_measure(); });
    lock.lock();
    if (may && !stopping_ && pauses_ == 0) break;
    if (may && options_.measured) {
      lock.unlock();
      tell("measured", options_.measured);
      lock.lock();
    } else if (!may) {
      ++status_.refusals;
      changed_.wait_for(lock, duration_of(options_.ask_again_seconds), [&] { return stopping_; });
    }
  }
  measuring_ = true;  // set before it is the device's turn, so that pause() waits for both
  ++status_.measurements;
  lock.unlock();
  device_.measuring.lock();
  lock.lock();
  waited_ += Clock::now() - start;
}

void TuningWork::end() {
  device_.measuring.unlock();
  {
    const std::lock_guard lock(mutex_);
    measuring_ = false;
    changed_.notify_all();
  }
  if (options_.measured) tell("measured", options_.measured);
}

void TuningWork::run() {
  {
    const std::lock_guard lock(mutex_);
    if (ended_ || stopping_) {
      ended_ = true;
      changed_.notify_all();
      return;
    }
    running_ = true;
    runs_on_ = std::this_thread::get_id();
  }
  // Work between measurements must not break a capture of a graph by another thread.
  const device::RelaxedCapture relaxed(device_.context->table());
  try {
    work();
  } catch (const std::exception& error) {
    try {
      note(fmt::format("background tuning has ended: {}", error.what()));
      const std::lock_guard lock(mutex_);
      status_.last_error = error.what();
    } catch (const std::bad_alloc&) {  // there is no memory for the reason
    }
  }
  const std::lock_guard lock(mutex_);
  running_ = false;
  ended_ = true;
  runs_on_ = {};
  changed_.notify_all();
}

// Returns the next problem to tune, or nullopt if no problem waits at present.
std::optional<shape_log::PlannedProblem> TuningWork::next() {
  const std::lock_guard lock(mutex_);
  if (!takes_planned()) {
    if (next_ == given()) return std::nullopt;
    const std::size_t at = next_++, problems = options_.problems.size();
    if (at < problems) return options_.problems[at];
    return options_.batches[at - problems];
  }
  const std::int64_t kept = device_.shape_counts->kept();
  if (looked_at_ == kept) return std::nullopt;
  auto found = device_.shape_counts->most_frequent(done_);
  if (!found) {
    looked_at_ = kept;
    changed_.notify_all();
    return std::nullopt;
  }
  looked_at_ = -1;
  done_.insert(found->first);
  return std::move(found->second);
}

void TuningWork::work() {
  bool behind = false;  // some plan does not have its kernel yet
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
    }
    if (const auto problem = next()) behind = tune_one(*problem) || behind;
    if (behind) behind = update_plans();
    std::unique_lock lock(mutex_);
    if (!takes_planned()) {
      if (next_ == given() && !behind) return;
      if (next_ < given()) continue;
    } else if (looked_at_ < 0) {
      continue;
    }
    changed_.wait_for(lock, kLook, [&] { return stopping_ || woken_; });
    woken_ = false;
  }
}

bool TuningWork::update_plans() {
  const auto stopped = [&] {
    const std::lock_guard lock(mutex_);
    return stopping_;
  };
  return device_.followers->update(planner_of(device_), stopped, [&](const std::exception& error) {
    note(fmt::format("a plan keeps its configuration, as a better one could not be made ready: {}",
                     error.what()));
  });
}

std::vector<TuneResult> TuningWork::search(const shape_log::PlannedProblem& problem,
                                           const TuneOptions& options,
                                           const std::function<bool()>& ended) {
  const Beside beside = {.turns = this, .threads = options_.threads};
  if (const auto* batch = std::get_if<BatchProblem>(&problem)) {
    return tune_batch_on(device_, *batch, {}, options, ended, beside);
  }
  return {tune_on(device_, {std::get<Problem>(problem)}, options, ended, beside)};
}

void TuningWork::tell_tuned(const shape_log::PlannedProblem& problem, const TuneResult& result) {
  const auto tell_of = [&](const char* name, const auto& call, const auto& of) {
    if (call) tell(name, [&] { call(of, result); });
  };
  if (const auto* batch = std::get_if<BatchProblem>(&problem)) {
    return tell_of("tuned_batch", options_.tuned_batch, *batch);
  }
  tell_of("tuned", options_.tuned, std::get<Problem>(problem));
}

bool TuningWork::tune_one(const shape_log::PlannedProblem& problem) {
  {
    const std::lock_guard lock(mutex_);
    waited_ = {};
  }
  const Clock::time_point start = Clock::now();
  TuneOptions options;
  if (options_.progress) {
    options.progress = [this](const TuneProgress& at) {
      tell("progress", [&] { options_.progress(at); });
    };
  }
  const auto ended = [&] {
    const std::lock_guard lock(mutex_);
    return stopping_ || (options_.time_limit_seconds > 0 &&
                         Clock::now() - start - waited_ > duration_of(options_.time_limit_seconds));
  };
  base::Tally& tally = device_.context->tally();
  try {
    bool anything_new = false;
    for (const TuneResult& result : search(problem, options, ended)) {
      {
        const std::lock_guard lock(mutex_);
        ++(result.status == TuneStatus::kTuned     ? status_.tuned
           : result.status == TuneStatus::kPartial ? status_.partial
                                                   : status_.already_there);
      }
      tally.add(base::Count::background_tunes);
      // A search that ended before it had tried a candidate has no result.
      const bool stored = result.status != TuneStatus::kPartial || result.tried > 1;
      if (stored) tell_tuned(problem, result);
      anything_new = anything_new || (stored && result.status != TuneStatus::kAlreadyThere);
    }
    return anything_new;
  } catch (const std::exception& error) {
    tally.add(base::Count::background_tunes_failed);
    {
      const std::lock_guard lock(mutex_);
      ++status_.failed;
      status_.last_error = error.what();
    }
    note(fmt::format("a problem could not be tuned in the background: {}", error.what()));
    const auto* known = dynamic_cast<const Error*>(&error);
    // The context is lost, and nothing more can be tuned on it.
    if (known != nullptr && known->code() == ErrorCode::kFault) throw;
    return false;
  }
}

}  // namespace api

inline namespace v0 {

struct BackgroundTuning::Impl {
  std::shared_ptr<api::TuningWork> work;
};

BackgroundTuning::BackgroundTuning(const Device& device, const BackgroundTuningOptions& options) {
  const Device::Impl& impl = api::inside(device);
  auto work = base::share_in_process(std::make_unique<api::TuningWork>(impl, options));
  impl_ = std::make_unique<Impl>(Impl{work});
  impl.attached->add(work);
  api::TuningWork::start(work);
}

BackgroundTuning::~BackgroundTuning() {
  if (impl_->work->process().is_here()) impl_->work->stop();
}

void BackgroundTuning::pause() const {
  impl_->work->process().check("background tuning");
  impl_->work->pause();
}

void BackgroundTuning::resume() const {
  impl_->work->process().check("background tuning");
  impl_->work->resume();
}

bool BackgroundTuning::wait(double seconds) const {
  impl_->work->process().check("background tuning");
  return impl_->work->wait(seconds);
}

void BackgroundTuning::cancel() const {
  impl_->work->process().check("background tuning");
  impl_->work->cancel();
}

BackgroundTuningStatus BackgroundTuning::status() const {
  impl_->work->process().check("background tuning");
  return impl_->work->status();
}

}  // namespace v0
}  // namespace annulus
