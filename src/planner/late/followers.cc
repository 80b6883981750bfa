#include "planner/late/followers.h"

#include <algorithm>
#include <utility>

#include "annulus/types.h"
#include "planner/choices.h"
#include "planner/made.h"

namespace annulus::planner {

bool can_follow(const Request& request) {
  return request.options.follow_tuning && request.options.swap != Swap::kNever &&
         request.options.config.empty() && request.selection == nullptr;
}

void Followers::add(const Planner& planner, const Request& request, const std::string& config,
                    std::size_t workspace_bytes, std::weak_ptr<LateKernel> plan) {
  auto follower = std::make_shared<Follower>(
      Follower{request.problem, request.options, config, {}, std::move(plan)});
  PlanOptions& options = follower->options;
  options.on_ready = {};
  // The caller's flag may no longer exist at that time. A limit of 0 would mean no limit.
  options.work.cancelled = {};
  options.max_workspace_bytes =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(workspace_bytes));
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(followers_, [](const auto& each) { return each->plan.expired(); });
    followers_.push_back(follower);
  }
  // the tuner calls update() again after the plan's kernel is compiled
  if (!request.options.wait) return;
  try {
    update(planner, follower.get());
  } catch (const std::exception&) {
  }
}

bool Followers::update(const Planner& planner, const std::function<bool()>& stopped,
                       const std::function<void(const std::exception&)>& failed) {
  std::vector<std::shared_ptr<Follower>> all;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(followers_, [](const auto& each) { return each->plan.expired(); });
    all = followers_;
  }
  bool again = false;
  for (const std::shared_ptr<Follower>& follower : all) {
    if (stopped()) break;
    try {
      again = update(planner, follower.get()) || again;
    } catch (const std::exception& error) {
      failed(error);
    }
  }
  return again;
}

bool Followers::update(const Planner& planner, Follower* follower) {
  const std::shared_ptr<LateKernel> plan = follower->plan.lock();
  if (!plan || plan->abandoned()) return false;
  if (plan->state() == PlanState::kCompiling) return true;
  const attention::DeviceLimits left = limits_for(planner.limits, follower->options);
  const Choices choices = choose({follower->problem}, left, follower->options, *planner.tuned);
  const attention::Choice& choice = choices.tuned ? choices.tuned->choice : choices.untuned;
  const std::string config = attention::to_string(choice.config);
  const std::string last = plan->config();
  const std::string& had = last.empty() ? follower->config : last;
  {
    const std::lock_guard lock(mutex_);
    if (config == had || config == std::exchange(follower->tried, config)) return false;
  }
  Prepared better =
      planner.prepare({follower->problem, follower->options, nullptr, /*general_serves=*/false});
  // the other configuration does not work, or does not fit
  if (better.info.config == had) return false;
  planner.context->tally().add(base::Count::better_plans);
  plan->offer(std::move(better));
  return false;
}

}  // namespace annulus::planner
