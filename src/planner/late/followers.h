#ifndef ANNULUS_PLANNER_LATE_FOLLOWERS_H_
#define ANNULUS_PLANNER_LATE_FOLLOWERS_H_

// Plans that learn of tuned results which are found after they were made (PlanOptions::
// follow_tuning). All functions may be called from any thread.

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "annulus/device.h"
#include "planner/late/late.h"
#include "planner/planner.h"

namespace annulus::planner {

// Whether a plan can follow: it may be swapped, and tuned results are looked up for it.
bool can_follow(const Request& request);

class Followers {
 public:
  // `plan` is given what is better than `config`, which it has, and needs no more workspace. Where
  // a result was stored since it was decided, and it waits for its kernel, it gets that here and
  // now. Nothing is thrown of that: the plan is a good one all the same.
  void add(const Planner& planner, const Request& request, const std::string& config,
           std::size_t workspace_bytes, std::weak_ptr<LateKernel> plan);

  // Prepares the plans anew whose configuration would now be another one, and gives them that. True
  // where one is to be asked about again, as its first own kernel is still being compiled. Ends
  // before a plan where stopped() is true, and calls failed() for each plan that keeps what it has
  // because Planner::prepare threw.
  bool update(const Planner& planner, const std::function<bool()>& stopped,
              const std::function<void(const std::exception&)>& failed);

 private:
  struct Follower {
    Problem problem;
    PlanOptions options;
    std::string config;  // of the plan at first
    std::string tried;   // the last that was made ready; guarded by mutex_
    std::weak_ptr<LateKernel> plan;
  };
  bool update(const Planner& planner, Follower* follower);

  std::mutex mutex_;  // guards what follows
  std::vector<std::shared_ptr<Follower>> followers_;
};

}  // namespace annulus::planner

#endif  // ANNULUS_PLANNER_LATE_FOLLOWERS_H_
