#ifndef ANNULUS_PLANNER_LATE_LATE_H_
#define ANNULUS_PLANNER_LATE_LATE_H_

// The specialised kernel of a plan that did not wait for it: at first none, in the end the plan
// with the kernel, or the reason why there is none. All functions may be called from any thread.

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "annulus/device.h"
#include "planner/prepared.h"

namespace annulus::planner {

class LateKernel {
 public:
  LateKernel(Swap swap, std::function<void(PlanState, const std::string&)> on_ready)
      : swap_(swap), on_ready_(std::move(on_ready)) {}

  // For a plan that already has its own kernel and may be offered a better one.
  LateKernel(Swap swap, PlanState state) : swap_(swap), state_(state) {}

  // The plan that runs use instead of the first one. Null if there is none yet, or if there will be
  // none. It exists as long as this object.
  const Prepared* own() const { return running_.load(std::memory_order_acquire); }

  PlanState state() const;
  std::string problem() const;
  // Waits until the kernel is compiled or has failed, for at most `seconds`, or without a limit if
  // that is negative. Returns false if the time was over.
  bool wait(double seconds) const;
  void swap();
  bool can_swap() const;

  // Sets the function that abandon() calls to cancel a compilation that has not begun. Called once,
  // before the plan is returned to the caller.
  void set_give_up(std::function<void()> give_up) { give_up_ = std::move(give_up); }
  // Called when the plan no longer exists.
  void abandon() {
    abandoned_ = true;
    if (give_up_) give_up_();
  }
  bool abandoned() const { return abandoned_; }

  // Exactly one of these two functions is called, once.
  void finish(Prepared own);
  void fail(std::string problem);

  // Adds a plan with a better configuration. Called only after the state is no longer kCompiling.
  void offer(Prepared better);
  // The configuration of the last plan passed to finish() or offer(). Empty if there is none.
  std::string config() const;

 private:
  void tell(PlanState state, const std::string& problem);

  const Swap swap_;
  const std::function<void(PlanState, const std::string&)> on_ready_;
  std::function<void()> give_up_;
  std::atomic<bool> abandoned_{false};
  std::atomic<const Prepared*> running_{nullptr};
  mutable std::mutex mutex_;  // guards all members below
  mutable std::condition_variable ended_;
  PlanState state_ = PlanState::kCompiling;
  std::string problem_;
  // The last plan is the one to swap to. The plans before it have run, and stay for threads that
  // hold a reference to them.
  std::vector<std::unique_ptr<const Prepared>> own_;
};

}  // namespace annulus::planner

#endif  // ANNULUS_PLANNER_LATE_LATE_H_
