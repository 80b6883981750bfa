#ifndef ANNULUS_API_TUNING_WORK_H_
#define ANNULUS_API_TUNING_WORK_H_

// The work of a BackgroundTuning, which runs while the host works.

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
  // The device calls stop() at its end, so this object may use the device until stop() has
  // returned.
  TuningWork(const Device::Impl& device, BackgroundTuningOptions options);
  TuningWork(const TuningWork&) = delete;
  TuningWork& operator=(const TuningWork&) = delete;

  // It is called once. Throws Error{kOutOfMemory} if no thread can be started, and the exceptions
  // of the host's executor.
  static void start(const std::shared_ptr<TuningWork>& work);

  void pause();
  void resume();
  bool wait(double seconds);
  void cancel();
  BackgroundTuningStatus status() const;
  const base::ProcessMark& process() const { return process_; }

  // Ends the work, and waits for its end unless one of its own callbacks calls this. After that,
  // nothing of the device or of the host is used any more.
  void stop() override;
  bool runs_here() const override;

  // Begins a turn of the search, when the host allows it to measure.
  void begin() override;
  void end() override;

 private:
  using Clock = std::chrono::steady_clock;

  void run();
  void work();
  void refuse();
  std::optional<shape_log::PlannedProblem> next();
  // The results for one problem, or for the classes of a batch.
  std::vector<TuneResult> search(const shape_log::PlannedProblem& problem,
                                 const TuneOptions& options, const std::function<bool()>& ended);
  // Returns whether a new result was stored.
  bool tune_one(const shape_log::PlannedProblem& problem);
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
  std::mutex joining_;  // protects the members from here to mutex_
  // It exists if the caller gave no problems, and lasts until stop(), because the host's executor
  // may keep the task for longer.
  std::optional<shape_log::ProblemKeeper> keeper_;
  std::thread thread_;

  mutable std::mutex mutex_;  // protects all members below
  std::condition_variable changed_;
  bool stopping_ = false;
  bool ended_ = false;
  bool running_ = false;
  bool measuring_ = false;
  bool woken_ = false;
  int pauses_ = 0;
  std::int64_t looked_at_ = -1;  // ShapeCounts::kept() when nothing was left to tune
  std::thread::id runs_on_;
  std::size_t next_ = 0;        // the next of the given problems and batches
  std::set<std::string> done_;  // lines of the planned problems that next() has returned
  Clock::duration waited_{};    // the wait for the current problem
  BackgroundTuningStatus status_;
};

}  // namespace annulus::api

#endif  // ANNULUS_API_TUNING_WORK_H_
