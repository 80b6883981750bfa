#ifndef ANNULUS_PLANNER_LATE_FOLLOWERS_H_
#define ANNULUS_PLANNER_LATE_FOLLOWERS_H_

// Plans that adopt tuned results which are found after the plans were made
// (PlanOptions::follow_tuning). All functions may be called from any thread.

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
  // Adds a plan. Later it receives plans that are better than `config`, its configuration, and need
  // no more workspace. If a better result was stored since the plan was decided, and its options
  // wait for kernels, it receives that plan during this call. Errors of that are not thrown,
  // because the plan works as it is.
  void add(const Planner& planner, const Request& request, const std::string& config,
           std::size_t workspace_bytes, std::weak_ptr<LateKernel> plan);

  // Prepares again the plans whose configuration would now be a different one, and offers them the
  // new plans. Returns true if a plan must be updated again later, because its first own kernel is
  // still being compiled. Stops before the next plan if stopped() returns true. Calls failed() for
  // each plan that stays unchanged because Planner::prepare threw.
  bool update(const Planner& planner, const std::function<bool()>& stopped,
              const std::function<void(const std::exception&)>& failed);

 private:
  struct Follower {
    Problem problem;
    PlanOptions options;
    std::string config;  // the first configuration of the plan
    std::string tried;   // the last configuration that was prepared; guarded by mutex_
    std::weak_ptr<LateKernel> plan;
  };
  bool update(const Planner& planner, Follower* follower);

  std::mutex mutex_;  // guards the members below
  std::vector<std::shared_ptr<Follower>> followers_;
};

}  // namespace annulus::planner

#endif  // ANNULUS_PLANNER_LATE_FOLLOWERS_H_
