#ifndef ANNULUS_PLANNER_FOLLOWERS_H_
#define ANNULUS_PLANNER_FOLLOWERS_H_

// Plans that learn of tuned results which are found after they were made (PlanOptions::
// follow_tuning). All functions may be called from any thread.

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "annulus/device.h"
#include "planner/late.h"
#include "planner/planner.h"

namespace annulus::planner {

// Whether a plan can follow: it may be swapped, and tuned results are looked up for it.
bool can_follow(const Request& request);

class Followers {
 public:
  // `plan` is given what is better than `config`, which it has, and needs no more workspace.
  void add(const Request& request, const std::string& config, std::size_t workspace_bytes,
           std::weak_ptr<LateKernel> plan);

  // Prepares the plans anew whose configuration would now be another one, and gives them that. True
  // where one is to be asked about again, as its first own kernel is still being compiled. Throws
  // as Planner::prepare; the plans that come behind have had their turn all the same.
  bool update(const Planner& planner);

 private:
  struct Follower {
    Problem problem;
    PlanOptions options;
    std::string config;  // of the plan at first
    std::string tried;   // the last that was made ready
    std::weak_ptr<LateKernel> plan;
  };
  static bool update(const Planner& planner, Follower* follower);

  std::mutex updating_;  // held by the one thread that updates; taken before mutex_
  std::mutex mutex_;     // guards followers_
  std::vector<std::shared_ptr<Follower>> followers_;
};

}  // namespace annulus::planner

#endif  // ANNULUS_PLANNER_FOLLOWERS_H_
