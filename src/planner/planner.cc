#include "planner/planner.h"

#include "attention/plan/general.h"
#include "attention/problem/operands.h"
#include "base/fail.h"
#include "base/work.h"
#include "jit/missing_kernel.h"
#include "planner/choices.h"
#include "planner/describe.h"
#include "planner/fit.h"
#include "planner/made.h"
#include "planner/millis.h"
#include "shape_log/shape_line.h"

namespace annulus::planner {
namespace {

// Completes the plan whose making began at `start`, and adds its description.
Prepared finish(const Planner& planner, const Request& request, Made made, Clock::time_point start,
                std::int64_t work_steps) {
  const Clock::time_point ready = Clock::now();
  PlanInfo info = describe(made.forward, request.options);
  info.tuned = made.tuned;
  if (!made.steps.empty()) planner.context->tally().add(base::Count::fitted_plans);
  info.work_steps = work_steps;
  info.compile_ms = made.compile_ms;
  // plan_ms includes the time to look up a tuned result and to try a result that does not work.
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

void check_request(const Request& request) {
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

Prepared Planner::prepare(const Request& request) const {
  check_request(request);
  const jit::KernelsFor wanted(
      [&] { return shape_log::wanted_by(request.problem, request.options, request.selection); });
  const base::Work work(request.options.work, "planning");
  const std::int64_t before = work.steps();  // the steps of earlier calls in the same scope
  const Clock::time_point start = Clock::now();
  const attention::DeviceLimits left = limits_for(limits, request.options);
  const Choices choices =
      choose({request.problem, request.selection}, left, request.options, *tuned);
  Made made = make_first_that_works(*this, request, choices, left);
  if (choices.tuned && made.tuned.empty()) context->tally().add(base::Count::recovered_tuned);
  return finish(*this, request, std::move(made), start, work.steps() - before);
}

Prepared Planner::prepare_general(const Request& request) const {
  check_request(request);
  if (request.selection != nullptr) {
    base::fail(ErrorCode::kUnsupported,
               "there is no general kernel for a selection, whose tiles are chosen in each run");
  }
  const jit::KernelsFor wanted(
      [] { return "a plan that does not wait; `annulus warm --general` compiles such kernels"; });
  const base::Work work(request.options.work, "planning");
  const std::int64_t before = work.steps();
  const Clock::time_point start = Clock::now();
  const attention::DeviceLimits left = limits_for(limits, request.options);
  return finish(*this, request, make_general(*this, request, left), start, work.steps() - before);
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

Preview Planner::preview(const Problem& problem, const PlanOptions& options,
                         const device::DeviceInfo& chip) const {
  check_request({problem, options});
  const base::Work work(options.work, "planning");
  const std::int64_t before = work.steps();
  const Clock::time_point start = Clock::now();
  const attention::DeviceLimits left = limits_for(limits, options);
  const Choices choices = choose({problem}, left, options, *tuned);
  return with_first_that_works(
      choices, *tuned, log, [&](const attention::Choice& choice, const std::string& origin) {
        const FittedPlans fitted = plans_for(*this, problem, options, choice, left);
        BranchPlans plans;
        for (const attention::LaunchPlan& plan : fitted.plans) plans.push_back(&plan);
        Preview made{describe(plans, options), predict(plans, chip)};
        made.info.tuned = origin;
        made.info.plan_ms = millis(Clock::now() - start);
        made.info.work_steps = work.steps() - before;
        made.info.decisions.insert(made.info.decisions.end(), fitted.steps.begin(),
                                   fitted.steps.end());
        return made;
      });
}

void Planner::prefetch(const Problem& problem, const PlanOptions& options) const {
  validate(problem);
  const jit::KernelsFor wanted([&] { return shape_log::wanted_by(problem, options); });
  const base::Work work(options.work, "planning");
  const attention::DeviceLimits left = limits_for(limits, options);
  const Choices choices = choose({problem}, left, options, *tuned);
  with_first_that_works(
      choices, *tuned, log, [&](const attention::Choice& choice, const std::string&) {
        const FittedPlans fitted = plans_for(*this, problem, options, choice, left);
        for (const attention::LaunchPlan& plan : fitted.plans) {
          // If B or Sq is 0, nothing is launched, and prepare() gets no kernels either.
          if (plan.launches.empty()) continue;
          device_tiles->get(plan.tiles);
          kernels->get(plan.spec);
          if (!plan.split.empty()) kernels->get(plan.combine_spec);
        }
      });
}

std::vector<jit::KernelSpec> Planner::kernels_of(const Request& request) const {
  check_request(request);
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
