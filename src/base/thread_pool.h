#ifndef ANNULUS_BASE_THREAD_POOL_H_
#define ANNULUS_BASE_THREAD_POOL_H_

// A fixed set of threads that share the indices of one loop at a time.

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "base/work.h"

namespace annulus::base {

// The number of processors that the process may use; at least one.
int processors();

class ThreadPool {
 public:
  // If `threads` is 0, there is one thread for each processor that the process may use. The
  // caller's thread counts as one. If the system refuses a thread, the pool has fewer threads.
  explicit ThreadPool(int threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls body(index, worker) for every index in [0, count), with worker in [0, threads()), and
  // returns after all calls have ended. Indices are assigned in ascending order. After the first
  // exception no further indices are assigned, and the exception is thrown here. Loops that are
  // started from several threads run one after another. A loop must not start another loop on the
  // same pool. The caller's limit of work (base/work.h) applies to all threads together.
  void parallel_for(std::int64_t count,
                    const std::function<void(std::int64_t index, int worker)>& body);

 private:
  void work(int worker);
  void drain(int worker);

  std::vector<std::thread> workers_;
  std::mutex loop_mutex_;  // held while a loop runs
  std::mutex mutex_;       // guards all members below
  std::condition_variable started_;
  std::condition_variable ended_;
  const std::function<void(std::int64_t, int)>* body_ = nullptr;
  std::int64_t next_ = 0;
  std::int64_t count_ = 0;
  std::uint64_t generation_ = 0;
  int busy_ = 0;
  bool stopping_ = false;
  Work* work_ = nullptr;  // the caller's Work
  std::exception_ptr error_;
};

}  // namespace annulus::base

#endif  // ANNULUS_BASE_THREAD_POOL_H_
