#include "base/background.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "annulus/types.h"
#include "base/fail.h"
#include "base/no_signals.h"
#include "base/process.h"
#include "base/thread_pool.h"

namespace annulus::base {
namespace {

std::atomic<bool> ends{false};

// Calls the task once. If its last copy is destroyed without a call, calls `dropped`.
class Once {
 public:
  Once(Background::Task task, Background::Task dropped)
      : task_(std::move(task)), dropped_(std::move(dropped)) {}
  Once(const Once&) = delete;
  Once& operator=(const Once&) = delete;
  ~Once() {
    if (!done_.exchange(true)) dropped_();
  }

  void call() {
    if (!done_.exchange(true)) task_();
  }
  // After this call neither of them is called.
  void forget() { done_ = true; }

 private:
  Background::Task task_;
  Background::Task dropped_;
  std::atomic<bool> done_{false};
};

class OwnThreads {
 public:
  OwnThreads() : most_(static_cast<std::size_t>(std::clamp(processors() / 2, 1, 4))) {}

  ~OwnThreads() {
    // A child of fork() has none of the threads, and one of them may have held the lock.
    if (!mark_.is_here()) {
      for (std::thread& thread : threads_) thread.detach();
      return;
    }
    ends = true;
    {
      std::lock_guard lock(mutex_);
      ending_ = true;
      for (const std::shared_ptr<Once>& task : tasks_) task->forget();
    }
    waiting_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  void add(std::shared_ptr<Once> task) {
    std::lock_guard lock(mutex_);
    if (idle_ <= tasks_.size() && threads_.size() < most_) start_thread();
    tasks_.push_back(std::move(task));
    waiting_.notify_one();
  }

 private:
  // The caller holds mutex_.
  void start_thread() {
    const NoSignals none;
    try {
      threads_.emplace_back([this] { work(); });
    } catch (const std::system_error& error) {
      if (!threads_.empty()) return;  // the existing threads do the work
      fail(ErrorCode::kOutOfMemory, "the system refuses a thread to compile on: {}", error.what());
    }
  }

  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      ++idle_;
      waiting_.wait(lock, [&] { return ending_ || !tasks_.empty(); });
      --idle_;
      if (ending_) return;
      std::shared_ptr<Once> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task->call();
      task.reset();
      lock.lock();
    }
  }

  const std::size_t most_;
  const ProcessMark mark_;
  std::mutex mutex_;  // guards all members below
  std::condition_variable waiting_;
  std::deque<std::shared_ptr<Once>> tasks_;
  std::vector<std::thread> threads_;
  std::size_t idle_ = 0;
  bool ending_ = false;
};

OwnThreads& own_threads() {
  static OwnThreads threads;
  return threads;
}

}  // namespace

bool Background::process_ends() { return ends; }

void Background::start(Task task, Task dropped) const {
  auto once = std::make_shared<Once>(std::move(task), std::move(dropped));
  try {
    if (executor_) {
      executor_([once] { once->call(); });
    } else {
      own_threads().add(once);
    }
  } catch (...) {
    once->forget();
    throw;
  }
}

}  // namespace annulus::base
