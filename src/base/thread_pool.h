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

// How many processors the process may use; at least one.
int processors();

class ThreadPool {
 public:
  // threads == 0: one for each processor that the process may use. The caller's thread counts as
  // one. Where the system refuses a thread, the pool has those that it got.
  explicit ThreadPool(int threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls body(index, worker) for every index in [0, count), worker in [0, threads()), and returns
  // when all have ended. Indices are handed out in ascending order. After the first exception no
  // further indices are handed out, and it is thrown here. Loops that are started from several
  // threads run one after another; a loop must not start another on the same pool. The caller's
  // limit of work (base/work.h) holds for all threads together.
  void parallel_for(std::int64_t count,
                    const std::function<void(std::int64_t index, int worker)>& body);

 private:
  void work(int worker);
  void drain(int worker);

  std::vector<std::thread> workers_;
  std::mutex loop_mutex_;  // held for the length of a loop
  std::mutex mutex_;       // guards all below
  std::condition_variable started_;
  std::condition_variable ended_;
  const std::function<void(std::int64_t, int)>* body_ = nullptr;
  std::int64_t next_ = 0;
  std::int64_t count_ = 0;
  std::uint64_t generation_ = 0;
  int busy_ = 0;
  bool stopping_ = false;
  Work* work_ = nullptr;  // the caller's
  std::exception_ptr error_;
};

}  // namespace annulus::base

#endif  // ANNULUS_BASE_THREAD_POOL_H_
