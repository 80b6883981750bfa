#ifndef ANNULUS_PLANNER_LATE_LATE_H_
#define ANNULUS_PLANNER_LATE_LATE_H_

// What a plan that did not wait has of its own kernel: first nothing, in the end the plan with it,
// or why there is none. All functions may be called from any thread.

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

  // Makes one for a plan that has its own kernel, and may be offered a better one.
  LateKernel(Swap swap, PlanState state) : swap_(swap), state_(state) {}

  // The plan that runs are to use instead of the first; null: not yet, or never. It lives as long
  // as this object.
  const Prepared* own() const { return running_.load(std::memory_order_acquire); }

  PlanState state() const;
  std::string problem() const;
  // Waits until the kernel is compiled or could not be, at most so many seconds; negative: without
  // an end. False where the time was over.
  bool wait(double seconds) const;
  void swap();
  bool can_swap() const;

  // What abandon() calls, to give up a compilation that has not begun. Called once, before the plan
  // is handed out.
  void set_give_up(std::function<void()> give_up) { give_up_ = std::move(give_up); }
  // Nobody asks any more.
  void abandon() {
    abandoned_ = true;
    if (give_up_) give_up_();
  }
  bool abandoned() const { return abandoned_; }

  // One of the two is called, once.
  void finish(Prepared own);
  void fail(std::string problem);

  // A plan with a better configuration, once the state is no longer kCompiling.
  void offer(Prepared better);
  // Returns the configuration of the last plan that finish() or offer() was given; empty: none.
  std::string config() const;

 private:
  void tell(PlanState state, const std::string& problem);

  const Swap swap_;
  const std::function<void(PlanState, const std::string&)> on_ready_;
  std::function<void()> give_up_;
  std::atomic<bool> abandoned_{false};
  std::atomic<const Prepared*> running_{nullptr};
  mutable std::mutex mutex_;  // guards all below
  mutable std::condition_variable ended_;
  PlanState state_ = PlanState::kCompiling;
  std::string problem_;
  // The last is the one to swap to. Those before it have run, and stay for who holds a reference.
  std::vector<std::unique_ptr<const Prepared>> own_;
};

}  // namespace annulus::planner

#endif  // ANNULUS_PLANNER_LATE_LATE_H_
