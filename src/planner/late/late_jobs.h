#ifndef ANNULUS_PLANNER_LATE_LATE_JOBS_H_
#define ANNULUS_PLANNER_LATE_LATE_JOBS_H_

// The jobs of a device that run on other threads than its callers. They use the host's functions,
// log and allocator, which the host may remove after the device and all its plans are destroyed. So
// the device and its plans share a LateJobs. Its destructor lets no further job begin and waits for
// the jobs that are running.

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/process.h"

namespace annulus::planner {

class LateJobs {
 public:
  // The part that jobs hold. It does not keep the LateJobs alive.
  class UnderWay {
   public:
    // A job calls begin() and end() around its work. begin() returns false if no job may begin any
    // more.
    bool begin();
    void end();

   private:
    friend class LateJobs;
    std::mutex mutex_;  // guards all members below
    std::condition_variable ended_;
    std::vector<std::thread::id> threads_;  // the threads of running jobs
    bool closed_ = false;
  };

  LateJobs() = default;
  // Does not wait for a job of the calling thread, because that thread is inside a function of the
  // host.
  ~LateJobs();
  LateJobs(const LateJobs&) = delete;
  LateJobs& operator=(const LateJobs&) = delete;

  const std::shared_ptr<UnderWay>& under_way() const { return under_way_; }

 private:
  std::shared_ptr<UnderWay> under_way_ = std::make_shared<UnderWay>();
  base::ProcessMark process_;
};

}  // namespace annulus::planner

#endif  // ANNULUS_PLANNER_LATE_LATE_JOBS_H_
