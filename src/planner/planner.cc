#include "planner/planner.h"

#include <chrono>

#include "attention/problem/operands.h"
#include "base/fail.h"
#include "planner/choices.h"
#include "planner/describe.h"

namespace annulus::planner {
namespace {

using Clock = std::chrono::steady_clock;

double millis(Clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

void check(const Request& request) {
  validate(request.problem);
  if (request.options.strides) {
    attention::check_rows_given(request.problem, *request.options.strides);
  }
  if (request.selection == nullptr) return;
  selection::validate(request.problem, *request.selection);
  if (request.options.kv_splits <= 1) return;
  base::fail(ErrorCode::kUnsupported,
             "kv_splits is {}, but rows of a selection are not split, as their tiles are listed "
             "on the device; leave it 0",
             request.options.kv_splits);
}

// Plans with their kernels and lists, and how long it took to get these after the plans were made.
struct Made {
  attention::BranchedForward forward;
  std::optional<selection::Selector> selector;
  std::string tuned;
  double compile_ms = 0;
};

Made make(const Planner& planner, const Request& request, const attention::Choice& choice,
          const attention::DeviceLimits& limits) {
  std::vector<attention::LaunchPlan> plans =
      attention::make_branch_plans(request.problem, choice, limits,
                                   {.kv_splits = request.options.kv_splits}, planner.tiles.get());
  const Clock::time_point planned = Clock::now();
  Made made{attention::BranchedForward(planner.context, *planner.kernels, request.problem,
                                       std::move(plans), planner.device_tiles.get()),
            std::nullopt,
            {},
            0};
  made.compile_ms = millis(Clock::now() - planned);
  return made;
}

// The list of tiles, from which the device takes the chosen ones, serves only this plan, so it goes
// into no cache.
Made make_selecting(const Planner& planner, const Request& request, const attention::Choice& choice,
                    const attention::DeviceLimits& limits) {
  const Problem& problem = request.problem;
  std::vector<attention::LaunchPlan> plans;
  plans.push_back(selection::make_plan(problem, *request.selection, choice, limits));
  selection::SelectionPlan selected =
      selection::make_selection_plan(problem, *request.selection, plans.front());
  const Clock::time_point planned = Clock::now();
  Made made{
      attention::BranchedForward(planner.context, *planner.kernels, problem, std::move(plans)),
      std::nullopt,
      {},
      0};
  made.selector.emplace(planner.context, *planner.kernels, limits.arch, std::move(selected));
  made.compile_ms = millis(Clock::now() - planned);
  return made;
}

}  // namespace

Prepared Planner::prepare(const Request& request) const {
  check(request);
  const Clock::time_point start = Clock::now();
  const attention::DeviceLimits left = limits_for(limits, request.options);
  const Choices choices =
      choose({request.problem, request.selection}, left, request.options, *tuned);
  Made made = with_first_that_works(
      choices, *tuned, log, [&](const attention::Choice& choice, const std::string& origin) {
        Made one = request.selection == nullptr ? make(*this, request, choice, left)
                                                : make_selecting(*this, request, choice, left);
        one.tuned = origin;
        return one;
      });
  const Clock::time_point ready = Clock::now();
  PlanInfo info = describe(made.forward, request.options);
  info.tuned = made.tuned;
  info.compile_ms = made.compile_ms;
  // The time to look up a tuned result, and to try one that does not work, counts as planning.
  info.plan_ms = millis(ready - start) - made.compile_ms;
  if (made.selector) {
    info.device_bytes += made.selector->device_bytes();
    const std::vector<std::string>& lines = made.selector->plan().decisions;
    info.decisions.insert(info.decisions.end(), lines.begin(), lines.end());
  }
  log.write(base::LogLevel::kInfo, "{} for {}: {} ({}, {:.1f} ms)", info.config, device,
            info.kernel, info.source, info.compile_ms);
  return {std::move(made.forward), std::move(made.selector), std::move(info),
          check_operands ? context : nullptr};
}

void Planner::prefetch(const Problem& problem, const PlanOptions& options) const {
  validate(problem);
  const attention::DeviceLimits left = limits_for(limits, options);
  const Choices choices = choose({problem}, left, options, *tuned);
  with_first_that_works(
      choices, *tuned, log, [&](const attention::Choice& choice, const std::string&) {
        for (const attention::LaunchPlan& plan : attention::make_branch_plans(
                 problem, choice, left, {.kv_splits = options.kv_splits}, tiles.get())) {
          // With B or Sq of 0 nothing is launched, and prepare() fetches nothing either.
          if (plan.launches.empty()) continue;
          device_tiles->get(plan.tiles);
          kernels->get(plan.spec);
          if (!plan.split.empty()) kernels->get(plan.combine_spec);
        }
      });
}

}  // namespace annulus::planner
