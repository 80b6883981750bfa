#ifndef ANNULUS_PLANNER_LATE_LATE_JOBS_H_
#define ANNULUS_PLANNER_LATE_LATE_JOBS_H_

// The jobs of a device that run beside its callers. They use functions of the host, its log and its
// allocator, which the host may take away once the device and all its plans are gone. So these hold
// a LateJobs together, whose destructor lets no job begin any more and waits for those under way.

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/process.h"

namespace annulus::planner {

class LateJobs {
 public:
  // What jobs themselves hold, which keeps nobody from going.
  class UnderWay {
   public:
    // A job calls these two at its beginning and at its end. False where none may begin any more.
    bool begin();
    void end();

   private:
    friend class LateJobs;
    std::mutex mutex_;  // guards all below
    std::condition_variable ended_;
    std::vector<std::thread::id> threads_;  // of jobs under way
    bool closed_ = false;
  };

  LateJobs() = default;
  // Does not wait for a job of the calling thread, which is inside a function of the host.
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
