#include "base/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <exception>

namespace annulus::base {

int processors() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

ThreadPool::ThreadPool(int threads) {
  const int total = threads > 0 ? threads : processors();
  workers_.reserve(static_cast<std::size_t>(total) - 1);
  try {
    for (int worker = 1; worker < total; ++worker) {
      workers_.emplace_back([this, worker] { work(worker); });
    }
  } catch (const std::exception&) {
    // A limit on threads or memory is reached. The pool works with fewer threads.
  }
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  started_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

// Workers wait for a new generation, take indices until none is left, and decrement busy_. The
// caller takes indices as worker 0. If there is a single index, the caller processes it and no
// worker is woken.
void ThreadPool::parallel_for(std::int64_t count,
                              const std::function<void(std::int64_t, int)>& body) {
  if (count <= 0) return;
  std::lock_guard loop(loop_mutex_);
  if (count == 1) {
    body(0, 0);
    settle();  // drain() also does this
    return;
  }
  {
    std::lock_guard lock(mutex_);
    body_ = &body;
    next_ = 0;
    count_ = count;
    work_ = current_work();
    busy_ = static_cast<int>(workers_.size());
    error_ = nullptr;
    ++generation_;
  }
  started_.notify_all();
  drain(0);
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [this] { return busy_ == 0; });
  body_ = nullptr;
  if (error_) std::rethrow_exception(error_);
}

void ThreadPool::work(int worker) {
  std::uint64_t seen = 0;
  while (true) {
    Work* work = nullptr;
    {
      std::unique_lock lock(mutex_);
      started_.wait(lock, [&] { return stopping_ || generation_ != seen; });
      if (stopping_) return;
      seen = generation_;
      work = work_;
    }
    {
      const Work::Helper helper(work);
      drain(worker);
    }
    std::lock_guard lock(mutex_);
    if (--busy_ == 0) ended_.notify_one();
  }
}

void ThreadPool::drain(int worker) {
  try {
    while (true) {
      std::int64_t index;
      {
        std::lock_guard lock(mutex_);
        if (next_ >= count_) break;
        index = next_++;
      }
      (*body_)(index, worker);
    }
    settle();  // then the steps of a loop do not depend on the distribution of its indices
  } catch (...) {
    std::lock_guard lock(mutex_);
    if (!error_) error_ = std::current_exception();
    next_ = count_;
  }
}

}  // namespace annulus::base
