#include "planner/late/late.h"

#include <chrono>
#include <utility>

#include "base/background.h"
#include "base/fail.h"

namespace annulus::planner {

PlanState LateKernel::state() const {
  std::lock_guard lock(mutex_);
  return state_;
}

std::string LateKernel::problem() const {
  std::lock_guard lock(mutex_);
  return problem_;
}

bool LateKernel::wait(double seconds) const {
  std::unique_lock lock(mutex_);
  const auto ended = [&] { return state_ != PlanState::kCompiling; };
  // A year is practically without a limit, and the clock does not overflow.
  constexpr double kYear = 365.0 * 24 * 3600;
  if (seconds < 0 || seconds > kYear) {
    ended_.wait(lock, ended);
    return true;
  }
  return ended_.wait_for(lock, std::chrono::duration<double>(seconds), ended);
}

void LateKernel::swap() {
  std::lock_guard lock(mutex_);
  if (state_ == PlanState::kCompiling) {
    base::fail(ErrorCode::kInvalidArgument,
               "the plan's kernel is still being compiled; wait for it before you swap");
  }
  if (own_.empty()) return;
  state_ = PlanState::kReady;
  running_.store(own_.back().get(), std::memory_order_release);
}

std::string LateKernel::config() const {
  std::lock_guard lock(mutex_);
  return own_.empty() ? std::string() : own_.back()->info.config;
}

bool LateKernel::can_swap() const {
  std::lock_guard lock(mutex_);
  return !own_.empty() && own_.back().get() != running_.load(std::memory_order_relaxed);
}

void LateKernel::offer(Prepared better) {
  auto kept = std::make_unique<const Prepared>(std::move(better));
  std::lock_guard lock(mutex_);
  // A plan that never ran is removed.
  const Prepared* running = running_.load(std::memory_order_relaxed);
  if (!own_.empty() && own_.back().get() != running) own_.pop_back();
  own_.push_back(std::move(kept));
  if (swap_ != Swap::kWhenReady) return;
  state_ = PlanState::kReady;
  running_.store(own_.back().get(), std::memory_order_release);
}

void LateKernel::finish(Prepared own) {
  const PlanState state = swap_ == Swap::kWhenReady ? PlanState::kReady : PlanState::kCompiled;
  {
    std::lock_guard lock(mutex_);
    own_.push_back(std::make_unique<const Prepared>(std::move(own)));
    state_ = state;
    if (state == PlanState::kReady) running_.store(own_.back().get(), std::memory_order_release);
  }
  tell(state, {});
}

void LateKernel::fail(std::string problem) {
  {
    std::lock_guard lock(mutex_);
    state_ = PlanState::kGeneral;
    problem_ = problem;
  }
  tell(PlanState::kGeneral, problem);
}

void LateKernel::tell(PlanState state, const std::string& problem) {
  ended_.notify_all();
  if (on_ready_ && !abandoned_ && !base::Background::process_ends()) {
    try {
      on_ready_(state, problem);
      // such errors are ignored, as errors of a log are: the plan exists and must not fail
    } catch (...) {
    }
  }
}

}  // namespace annulus::planner
