#include "planner/fit.h"

#include <algorithm>

#include "base/fail.h"
#include "base/math.h"

namespace annulus::planner {

void require_workspace(std::int64_t bytes, const PlanOptions& options) {
  if (options.max_workspace_bytes == 0 || bytes <= options.max_workspace_bytes) return;
  base::fail(ErrorCode::kOutOfMemory,
             "{} bytes of workspace are needed and max_workspace_bytes is {}; allow more, or make "
             "the problem smaller",
             bytes, options.max_workspace_bytes);
}

std::int64_t parts_of(const std::vector<attention::LaunchPlan>& plans) {
  std::int64_t parts = 1;
  for (const attention::LaunchPlan& plan : plans) {
    if (plan.split.empty()) continue;
    parts = std::max(parts, base::ceil_div(plan.tiles->longest_row, plan.split.max_tiles));
  }
  return parts;
}

FittedPlans make_fitting_plans(const Problem& problem, const attention::Choice& choice,
                               const attention::DeviceLimits& limits, attention::PlanForm form,
                               std::int64_t max_workspace_bytes, attention::TileCache* cache) {
  FittedPlans fitted;
  std::int64_t bytes = 0;
  const auto make = [&] {
    fitted.plans = attention::make_branch_plans(problem, choice, limits, form, cache);
    bytes = attention::workspace_of(problem, fitted.plans).bytes;
  };
  const auto too_large = [&] { return max_workspace_bytes > 0 && bytes > max_workspace_bytes; };
  make();
  if (!too_large()) return fitted;
  const std::int64_t asked = bytes;

  const auto draws = [](const attention::LaunchPlan& plan) { return plan.features.draws_work; };
  if (std::ranges::any_of(fitted.plans, draws)) {
    form.dealt = attention::Dealt::kCountedOff;
    make();
    fitted.steps.push_back(fmt::format(
        "workspace: {} bytes are more than max_workspace_bytes, {}; works are counted off instead "
        "of drawn from a counter: {} bytes",
        asked, max_workspace_bytes, bytes));
  }
  const std::int64_t parts = parts_of(fitted.plans);
  if (form.kv_splits == 0 && parts > 1) {
    std::int64_t fewer = parts;
    while (too_large() && fewer > 1) {
      fewer = fewer / 2;
      form.max_kv_splits = static_cast<int>(fewer);
      make();
    }
    fitted.steps.push_back(fmt::format(
        "workspace: {} bytes are more than max_workspace_bytes, {}; the longest tile rows, which "
        "the model would split into {}, are split into {}: {} bytes",
        asked, max_workspace_bytes, parts, parts_of(fitted.plans), bytes));
  }
  if (too_large() && problem.batch > 1) {
    const std::int64_t before = bytes;
    const std::int64_t least = base::ceil_div(problem.batch, attention::kMaxLaunches);
    form.max_batches = problem.batch;
    while (too_large() && form.max_batches > least) {
      form.max_batches = std::max(least, base::ceil_div(form.max_batches, 2));
      make();
    }
    fitted.steps.push_back(fmt::format(
        "workspace: {} bytes are more than max_workspace_bytes, {}; the {} batches run {} at a "
        "time, and {}: {} bytes",
        before, max_workspace_bytes, problem.batch, form.max_batches,
        fitted.plans.size() > 1 ? "the state between branches has the rows of a part"
                                : "the states of split rows are only for a part",
        bytes));
  }
  if (too_large()) {
    base::fail(ErrorCode::kOutOfMemory,
               "the plan needs {} bytes of workspace, {} after all steps that need less, and "
               "max_workspace_bytes is {}; allow more, set fewer kv_splits, or make the "
               "problem smaller",
               asked, bytes, max_workspace_bytes);
  }
  return fitted;
}

}  // namespace annulus::planner
