#include "planner/made.h"

#include <fmt/core.h>

#include <utility>

#include "attention/plan/general.h"
#include "base/fail.h"
#include "planner/millis.h"

namespace annulus::planner {

FittedPlans plans_for(const Planner& planner, const Problem& problem, const PlanOptions& options,
                      const attention::Choice& choice, const attention::DeviceLimits& limits,
                      int max_kv_splits, bool general) {
  return make_fitting_plans(problem, choice, limits,
                            {.kv_splits = options.kv_splits,
                             .max_kv_splits = max_kv_splits,
                             .general = general,
                             .dealt = attention::Dealt::kAsPays},
                            options.max_workspace_bytes, planner.tiles.get());
}

namespace {

// The arrays for parts are larger if rows are split into more parts. So if the device has too
// little memory for a plan, the plan is made again without the split that the model chose.
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

// The device selects the chosen tiles from this list. It serves only this plan, so it is not put
// into a cache.
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

Made make_as(const Planner& planner, const Request& request, const attention::Choice& choice,
             const attention::DeviceLimits& limits) {
  return request.selection == nullptr ? make(planner, request, choice, limits)
                                      : make_selecting(planner, request, choice, limits);
}

}  // namespace

Made make_general(const Planner& planner, const Request& request,
                  const attention::DeviceLimits& limits) {
  const attention::Choice choice =
      attention::general_config(request.problem, limits, request.options.strides);
  return make(planner, request, choice, limits, /*general=*/true);
}

namespace {

// Called after the kernels of `choices` failed: tries the heuristic's next choice, then a general
// kernel. If neither works, throws `error`, which is the error of the heuristic's first choice.
Made make_with_others(const Planner& planner, const Request& request, const Choices& choices,
                      const attention::DeviceLimits& limits, const Error& error) {
  std::vector<std::string> steps;
  const auto give_up_on = [&](const attention::KernelConfig& config, const Error& failed) {
    if (failed.code() != ErrorCode::kCompile) throw failed;
    const std::string why = failed.what();
    steps.push_back(fmt::format("the kernel {} does not work here: {}",
                                attention::to_string(config), why.substr(0, why.find('\n'))));
    planner.noted->write_once(planner.log, steps.back());
  };
  const auto with_steps = [&](Made made) {
    made.steps.insert(made.steps.begin(), steps.begin(), steps.end());
    planner.context->tally().add(base::Count::recovered_plans);
    return made;
  };
  give_up_on(choices.untuned.config, error);
  std::vector<attention::KernelConfig> broken = {choices.untuned.config};
  if (choices.tuned) broken.push_back(choices.tuned->choice.config);
  std::optional<attention::Choice> next;
  try {
    next = attention::choose_config(request.problem, limits, request.options.strides, {}, broken);
    return with_steps(make(planner, request, *next, limits));
  } catch (const Error& failed) {
    if (next) give_up_on(next->config, failed);
  }
  if (!request.general_serves) throw error;
  std::optional<Made> made;
  try {
    made = make_general(planner, request, limits);
  } catch (const Error&) {
    throw error;
  }
  steps.push_back("so the plan keeps a general kernel");
  return with_steps(std::move(*made));
}

}  // namespace

Made make_first_that_works(const Planner& planner, const Request& request, const Choices& choices,
                           const attention::DeviceLimits& limits) {
  try {
    return with_first_that_works(choices, *planner.tuned, planner.log,
                                 [&](const attention::Choice& choice, const std::string& origin) {
                                   Made made = make_as(planner, request, choice, limits);
                                   made.tuned = origin;
                                   return made;
                                 });
  } catch (const Error& error) {
    // If the driver refuses a call, the same configuration may work in the next call. A
    // configuration that the caller requested is not replaced, nor are the caller's own templates.
    // A selection has no other configuration.
    if (error.code() != ErrorCode::kCompile || !request.options.config.empty() ||
        planner.own_templates || request.selection != nullptr) {
      throw;
    }
    return make_with_others(planner, request, choices, limits, error);
  }
}

}  // namespace annulus::planner
