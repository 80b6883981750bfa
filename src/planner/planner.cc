#include "planner/planner.h"

#include "attention/plan/general.h"
#include "attention/problem/operands.h"
#include "base/fail.h"
#include "base/work.h"
#include "jit/missing_kernel.h"
#include "planner/choices.h"
#include "planner/describe.h"
#include "planner/fit.h"
#include "planner/millis.h"
#include "planner/shape_line.h"

namespace annulus::planner {
namespace {

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
  std::vector<std::string> steps;  // to need less memory
};

FittedPlans plans_for(const Planner& planner, const Problem& problem, const PlanOptions& options,
                      const attention::Choice& choice, const attention::DeviceLimits& limits,
                      int max_kv_splits = 0, bool general = false) {
  return make_fitting_plans(problem, choice, limits,
                            {.kv_splits = options.kv_splits,
                             .max_kv_splits = max_kv_splits,
                             .general = general,
                             .dealt = attention::Dealt::kAsPays},
                            options.max_workspace_bytes, planner.tiles.get());
}

// The arrays of parts are larger where rows are split more often. So a plan that the device has no
// memory for is made once more without the split that the model chose.
Made make(const Planner& planner, const Request& request, const attention::Choice& choice,
          const attention::DeviceLimits& limits, bool general = false) {
  const Problem& problem = request.problem;
  FittedPlans fitted = plans_for(planner, problem, request.options, choice, limits, 0, general);
  const bool may_split_less = request.options.kv_splits == 0 && parts_of(fitted.plans) > 1;
  const Clock::time_point planned = Clock::now();
  const auto place = [&](FittedPlans plans) {
    Made made{attention::BranchedForward(planner.context, *planner.kernels, problem,
                                         std::move(plans.plans), planner.device_tiles.get()),
              std::nullopt,
              {},
              0,
              std::move(plans.steps)};
    made.compile_ms = millis(Clock::now() - planned);
    return made;
  };
  try {
    return place(std::move(fitted));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kOutOfMemory || !may_split_less) throw;
    FittedPlans whole = plans_for(planner, problem, request.options, choice, limits, 1, general);
    whole.steps.push_back(
        fmt::format("device memory: tile rows are not split, because with their parts the plan "
                    "did not fit: {}",
                    error.what()));
    return place(std::move(whole));
  }
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
  require_workspace(selected.workspace_bytes, request.options);
  const Clock::time_point planned = Clock::now();
  Made made{
      attention::BranchedForward(planner.context, *planner.kernels, problem, std::move(plans)),
      std::nullopt,
      {},
      0,
      {}};
  made.selector.emplace(planner.context, *planner.kernels, limits.arch, std::move(selected));
  made.compile_ms = millis(Clock::now() - planned);
  return made;
}

// What was made since `start`, with its description.
Prepared finish(const Planner& planner, const Request& request, Made made, Clock::time_point start,
                std::int64_t work_steps) {
  const Clock::time_point ready = Clock::now();
  PlanInfo info = describe(made.forward, request.options);
  info.tuned = made.tuned;
  if (!made.steps.empty()) planner.context->tally().add(base::Count::fitted_plans);
  info.work_steps = work_steps;
  info.compile_ms = made.compile_ms;
  // The time to look up a tuned result, and to try one that does not work, counts as planning.
  info.plan_ms = millis(ready - start) - made.compile_ms;
  info.decisions.insert(info.decisions.end(), made.steps.begin(), made.steps.end());
  if (made.selector) {
    info.device_bytes += made.selector->device_bytes();
    const std::vector<std::string>& lines = made.selector->plan().decisions;
    info.decisions.insert(info.decisions.end(), lines.begin(), lines.end());
  }
  planner.log.write(base::LogLevel::kInfo, "{} for {}: {} ({}, {:.1f} ms)", info.config,
                    planner.device, info.kernel, info.source, info.compile_ms);
  return {std::move(made.forward), std::move(made.selector), std::move(info),
          planner.check_operands ? planner.context : nullptr};
}

}  // namespace

Prepared Planner::prepare(const Request& request) const {
  check(request);
  const jit::KernelsFor wanted(
      [&] { return wanted_by(request.problem, request.options, request.selection); });
  const base::Work work(request.options.work, "planning");
  const std::int64_t before = work.steps();  // of a scope's earlier calls
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
  if (choices.tuned && made.tuned.empty()) context->tally().add(base::Count::recovered_tuned);
  return finish(*this, request, std::move(made), start, work.steps() - before);
}

Prepared Planner::prepare_general(const Request& request) const {
  check(request);
  if (request.selection != nullptr) {
    base::fail(ErrorCode::kUnsupported,
               "there is no general kernel for a selection, whose tiles are chosen in each run");
  }
  const base::Work work(request.options.work, "planning");
  const std::int64_t before = work.steps();
  const Clock::time_point start = Clock::now();
  const attention::DeviceLimits left = limits_for(limits, request.options);
  const attention::Choice choice =
      attention::general_config(request.problem, left, request.options.strides);
  Made made = make(*this, request, choice, left, /*general=*/true);
  return finish(*this, request, std::move(made), start, work.steps() - before);
}

MemoryNeeded Planner::memory_needed(const Problem& problem, const PlanOptions& options) const {
  validate(problem);
  const base::Work work(options.work, "planning");
  const attention::DeviceLimits left = limits_for(limits, options);
  const Choices choices = choose({problem}, left, options, *tuned);
  return with_first_that_works(
      choices, *tuned, log, [&](const attention::Choice& choice, const std::string&) {
        const FittedPlans fitted = plans_for(*this, problem, options, choice, left);
        MemoryNeeded needed;
        for (const attention::LaunchPlan& plan : fitted.plans) {
          if (plan.launches.empty()) continue;
          needed.device_bytes += plan.device_bytes;
          if (device_tiles->has(plan.tiles)) needed.shared_bytes += plan.tiles->device_bytes();
        }
        needed.workspace_bytes = attention::workspace_of(problem, fitted.plans).bytes;
        return needed;
      });
}

void Planner::prefetch(const Problem& problem, const PlanOptions& options) const {
  validate(problem);
  const jit::KernelsFor wanted([&] { return wanted_by(problem, options); });
  const base::Work work(options.work, "planning");
  const attention::DeviceLimits left = limits_for(limits, options);
  const Choices choices = choose({problem}, left, options, *tuned);
  with_first_that_works(
      choices, *tuned, log, [&](const attention::Choice& choice, const std::string&) {
        const FittedPlans fitted = plans_for(*this, problem, options, choice, left);
        for (const attention::LaunchPlan& plan : fitted.plans) {
          // With B or Sq of 0 nothing is launched, and prepare() fetches nothing either.
          if (plan.launches.empty()) continue;
          device_tiles->get(plan.tiles);
          kernels->get(plan.spec);
          if (!plan.split.empty()) kernels->get(plan.combine_spec);
        }
      });
}

std::vector<jit::KernelSpec> Planner::kernels_of(const Request& request) const {
  check(request);
  const base::Work work(request.options.work, "planning");
  const attention::DeviceLimits left = limits_for(limits, request.options);
  const Choices choices =
      choose({request.problem, request.selection}, left, request.options, *tuned);
  std::vector<jit::KernelSpec> specs;
  const auto add = [&](const std::vector<attention::LaunchPlan>& plans) {
    for (const attention::LaunchPlan& plan : plans) {
      if (plan.launches.empty()) continue;
      specs.push_back(plan.spec);
      if (!plan.split.empty()) specs.push_back(plan.combine_spec);
    }
  };
  with_first_that_works(
      choices, *tuned, log, [&](const attention::Choice& choice, const std::string&) {
        specs.clear();
        if (request.selection != nullptr) {
          const attention::LaunchPlan plan =
              selection::make_plan(request.problem, *request.selection, choice, left);
          add({plan});
          for (jit::KernelSpec& spec : selection::kernels_of(
                   selection::make_selection_plan(request.problem, *request.selection, plan),
                   left.arch)) {
            specs.push_back(std::move(spec));
          }
          return;
        }
        const FittedPlans fitted = plans_for(*this, request.problem, request.options, choice, left);
        add(fitted.plans);
        if (request.options.kv_splits != 0 || parts_of(fitted.plans) == 1) return;
        add(plans_for(*this, request.problem, request.options, choice, left, 1).plans);
      });
  return specs;
}

}  // namespace annulus::planner
