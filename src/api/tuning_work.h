#ifndef ANNULUS_API_TUNING_WORK_H_
#define ANNULUS_API_TUNING_WORK_H_

// What a BackgroundTuning does beside its host.

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "annulus/tune.h"
#include "api/impl.h"
#include "autotune/turns.h"
#include "base/process.h"
#include "shape_log/shape_counts.h"

namespace annulus::api {

class TuningWork : public AttachedWork, public autotune::Turns {
 public:
  // The device stops it at its end, so that it may use the device until stop() has returned.
  TuningWork(const Device::Impl& device, BackgroundTuningOptions options);
  TuningWork(const TuningWork&) = delete;
  TuningWork& operator=(const TuningWork&) = delete;

  // Called once. Throws Error{kOutOfMemory} where there is no thread, and what the host's executor
  // throws.
  static void start(const std::shared_ptr<TuningWork>& work);

  void pause();
  void resume();
  bool wait(double seconds);
  void cancel();
  BackgroundTuningStatus status() const;
  const base::ProcessMark& process() const { return process_; }

  // Ends it and waits for that, unless a callback of it calls this. Then nothing of the device and
  // of the host is used any more.
  void stop() override;
  bool runs_here() const override;

  // A turn of the search: when the host lets it measure.
  void begin() override;
  void end() override;

 private:
  using Clock = std::chrono::steady_clock;

  void run();
  void work();
  void refuse();
  std::optional<shape_log::PlannedProblem> next();
  // What was found for one problem, or for the classes of a batch.
  std::vector<TuneResult> search(const shape_log::PlannedProblem& problem,
                                 const TuneOptions& options, const std::function<bool()>& ended);
  bool tune_one(const shape_log::PlannedProblem& problem);  // whether a new result was stored
  void tell_tuned(const shape_log::PlannedProblem& problem, const TuneResult& result);
  bool takes_planned() const { return options_.problems.empty() && options_.batches.empty(); }
  std::size_t given() const { return options_.problems.size() + options_.batches.size(); }
  bool update_plans();
  void note(const std::string& text);
  bool nothing_left() const;  // Requires: mutex_ is held
  template <typename Call>
  void tell(const char* name, const Call& call);

  const Device::Impl& device_;
  const BackgroundTuningOptions options_;
  const base::ProcessMark process_;
  std::mutex joining_;  // guards what follows, up to the next one
  // Where nothing was given to tune, until stop(): the host's executor may keep the task for
  // longer.
  std::optional<shape_log::ProblemKeeper> keeper_;
  std::thread thread_;

  mutable std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  bool stopping_ = false;
  bool ended_ = false;
  bool running_ = false;
  bool measuring_ = false;
  bool woken_ = false;
  int pauses_ = 0;
  std::int64_t looked_at_ = -1;  // ShapeCounts::kept() when nothing was left to tune
  std::thread::id runs_on_;
  std::size_t next_ = 0;        // of the problems and batches that were given
  std::set<std::string> done_;  // lines of those that were planned
  Clock::duration waited_{};    // of the problem under way
  BackgroundTuningStatus status_;
};

}  // namespace annulus::api

#endif  // ANNULUS_API_TUNING_WORK_H_
