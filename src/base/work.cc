#include "base/work.h"

#include <limits>
#include <utility>

#include "base/fail.h"
#include "base/of_thread.h"

namespace annulus::base {
namespace {

// The steps that a thread collects before it adds them to the shared count. They take some tens of
// microseconds.
constexpr std::int64_t kGathered = 8192;

// The Work that a thread works for, and the steps that it has not added yet.
struct Share {
  Work* work = nullptr;
  std::int64_t steps = 0;
};

Share& share() {
  ANNULUS_THREAD_LOCAL Share mine;
  return mine;
}

std::int64_t sum(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  return __builtin_add_overflow(a, b, &result) ? std::numeric_limits<std::int64_t>::max() : result;
}

constexpr const char* kAdvice =
    "give it a larger limit (WorkLimit::steps, WorkScope, max_work, --max-work; 0: no limit), or a "
    "simpler pattern, larger blocks or a shorter sequence";

}  // namespace

Work::Work(const WorkLimit& limit, std::string_view doing)
    : limit_(limit), doing_(doing), is_inner_(share().work != nullptr) {
  if (limit.steps < 0) {
    fail(ErrorCode::kInvalidArgument, "a limit of {} steps of work; give 0 for none, or more",
         limit.steps);
  }
  if (is_inner_) return;
  share() = {this, 0};
  // A cancellation flag that was set before the call ends the call before it does any work.
  try {
    settle(0);
  } catch (...) {
    share() = {};
    throw;
  }
}

Work::~Work() {
  if (!is_inner_) share() = {};
}

std::int64_t Work::steps() const {
  const Share& mine = share();
  const Work& outer = is_inner_ ? *mine.work : *this;
  return sum(outer.steps_.load(std::memory_order_relaxed), mine.steps);
}

void Work::settle(std::int64_t steps) {
  std::int64_t before = steps_.load(std::memory_order_relaxed);
  while (!steps_.compare_exchange_weak(before, sum(before, steps), std::memory_order_relaxed)) {
  }
  const std::int64_t done = sum(before, steps);
  if (limit_.cancelled && limit_.cancelled()) {
    fail(ErrorCode::kCancelled, "{}: cancelled by the caller after {} steps of work", doing_, done);
  }
  if (limit_.steps > 0 && done > limit_.steps) {
    fail(ErrorCode::kLimit,
         "{}: not done after {} steps of work, which is the limit of the call; {}", doing_,
         limit_.steps, kAdvice);
  }
}

Work::Helper::Helper(Work* work) { share() = {work, 0}; }
Work::Helper::~Helper() { share() = {}; }

Work* current_work() { return share().work; }

std::int64_t steps_done() {
  const Work* work = share().work;
  return work == nullptr ? 0 : work->steps();
}

void charge(std::int64_t steps) {
  Share& mine = share();
  if (mine.work == nullptr) return;
  mine.steps = sum(mine.steps, steps);
  if (mine.steps >= kGathered) mine.work->settle(std::exchange(mine.steps, 0));
}

void settle() {
  Share& mine = share();
  if (mine.work != nullptr) mine.work->settle(std::exchange(mine.steps, 0));
}

void expect(std::int64_t steps, std::string_view what) {
  const Work* work = share().work;
  if (work == nullptr || work->limit_.steps == 0) return;
  const std::int64_t done = work->steps();
  if (sum(done, steps) <= work->limit_.steps) return;
  fail(ErrorCode::kLimit,
       "{}: {} would take about {} steps of work, and {} of the call's {} are done; {}",
       work->doing_, what, steps, done, work->limit_.steps, kAdvice);
}

void charge_once(std::string_view key, std::int64_t steps, std::string_view what) {
  Work* const work = share().work;
  if (work == nullptr) return;
  {
    const std::lock_guard lock(work->mutex_);
    if (work->once_.contains(key)) return;
  }
  expect(steps, what);
  {
    const std::lock_guard lock(work->mutex_);
    if (!work->once_.emplace(key).second) return;
  }
  charge(steps);
}

}  // namespace annulus::base
