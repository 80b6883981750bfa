// Plans that do not wait for their kernels.
#include <algorithm>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "attention/plan/general.h"
#include "base/fail.h"
#include "base/work.h"
#include "pattern/node.h"
#include "planner/made.h"
#include "planner/planner.h"

namespace annulus::planner {
namespace {

// Whether the kernels of all plans are in memory.
bool are_loaded(const jit::KernelCache& kernels, const std::vector<attention::LaunchPlan>& plans) {
  return std::ranges::all_of(plans, [&](const attention::LaunchPlan& plan) {
    return plan.launches.empty() ||
           (kernels.has(plan.spec) && (plan.split.empty() || kernels.has(plan.combine_spec)));
  });
}

// What a plan that does not wait owns beside its caller.
struct LateWork {
  Planner planner;
  Problem problem;
  PlanOptions options;
  std::shared_ptr<LateKernel> late;

  void compile() {
    if (late->abandoned()) return;
    // The caller's flag may be gone by now; a plan that is gone ends the work as well.
    options.work.cancelled = [kept = late] { return kept->abandoned(); };
    try {
      late->finish(planner.prepare({problem, options, nullptr, /*general_serves=*/false}));
      planner.context->tally().add(base::Count::late_plans);
    } catch (const Error& error) {
      give_up(error.what());
    } catch (const std::bad_alloc&) {
      give_up("the host has no memory left");
    }
  }
  void give_up(const std::string& why) {
    if (late->abandoned()) return;
    planner.context->tally().add(base::Count::late_plans_failed);
    planner.noted->write_once(
        planner.log, fmt::format("a plan keeps its general kernel, as its own could not be had: {}",
                                 why.substr(0, why.find('\n'))));
    late->fail(why);
  }
};

// Whether the tiles of a pattern are found block by block, so that a list takes its time.
bool lists_blocks(const Pattern& pattern) {
  return pattern::any_leaf(pattern.node(), [](const pattern::leaves::Structure& structure) {
    return structure.layout != nullptr;
  });
}

}  // namespace

PreparedLate for_good(Prepared prepared) {
  const std::size_t bytes = prepared.workspace_bytes();
  return {std::move(prepared), nullptr, bytes};
}

PreparedLate Planner::prepare_late(const Request& request) const {
  if (request.options.swap == Swap::kNever) return for_good(prepare_general(request));
  check_request(request);
  const base::Work work(request.options.work, "planning");
  const auto wait = [&](const Error& why) {
    Prepared prepared = prepare(request);
    prepared.info.waited = why.what();
    return for_good(std::move(prepared));
  };
  // Lists of blocks are made once here, for the general kernel, and once more beside the caller;
  // and no folder of tuned results is read here.
  std::int64_t bytes = 0;
  if (request.selection == nullptr && tuned->is_loaded() &&
      !lists_blocks(request.problem.pattern)) {
    const attention::DeviceLimits left = limits_for(limits, request.options);
    const Choices choices = choose({request.problem}, left, request.options, *tuned);
    const FittedPlans own =
        plans_for(*this, request.problem, request.options,
                  choices.tuned ? choices.tuned->choice : choices.untuned, left);
    if (are_loaded(*kernels, own.plans)) return for_good(prepare(request));
    bytes = attention::workspace_of(request.problem, own.plans).bytes;
  }
  std::optional<Prepared> general;
  try {
    general = prepare_general(request);
  } catch (const Error& error) {
    // There is none for the problem, or it could not be had, while the own kernel perhaps can.
    const bool own_may_do = error.code() == ErrorCode::kUnsupported ||
                            error.code() == ErrorCode::kLibrary ||
                            error.code() == ErrorCode::kCompile;
    if (!own_may_do) throw;
    return wait(error);
  }
  Prepared first = std::move(*general);
  const auto both = std::max(first.workspace_bytes(), static_cast<std::size_t>(bytes));
  PreparedLate made{std::move(first),
                    std::make_shared<LateKernel>(request.options.swap, request.options.on_ready),
                    both};
  auto job =
      std::make_shared<LateWork>(LateWork{*this, request.problem, request.options, made.late});
  // A limit of 0 would be none. What a plan cannot do without 1 byte it does otherwise.
  job->options.max_workspace_bytes = std::max<std::int64_t>(1, static_cast<std::int64_t>(both));
  context->tally().add(base::Count::general_plans);
  try {
    background.start([job] { job->compile(); },
                     [job] { job->give_up("the host's executor dropped the task"); });
  } catch (const std::exception& error) {
    job->give_up(fmt::format("it cannot be compiled beside the caller: {}", error.what()));
  }
  return made;
}

}  // namespace annulus::planner
