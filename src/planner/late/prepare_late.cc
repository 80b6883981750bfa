// Plans that do not wait for their kernels.

#include <algorithm>
#include <memory>
#include <mutex>
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

// Compiles a plan's own kernel. A host may keep the task for a long time, so the task releases the
// objects of the host and of the device when the job has ended or is cancelled. Only the thread
// that takes planner_ out may use the other members.
class LateWork {
 public:
  LateWork(Planner planner, Problem problem, PlanOptions options, std::shared_ptr<LateKernel> late)
      : planner_(std::move(planner)),
        problem_(std::move(problem)),
        options_(std::move(options)),
        late_(std::move(late)) {
    // The caller's flag may no longer exist when the job runs. A destroyed plan also cancels the
    // work.
    options_.work.cancelled = [late = late_] { return late->abandoned(); };
  }

  void compile() {
    with_planner([&](const Planner& planner) {
      try {
        Prepared own = planner.prepare({problem_, options_, nullptr, /*general_serves=*/false});
        planner.context->tally().add(base::Count::late_plans);
        late_->finish(std::move(own));
      } catch (const Error& error) {
        fail(planner, error.what());
      } catch (const std::bad_alloc&) {
        fail(planner, "the host has no memory left");
      }
    });
  }
  void refuse(const std::string& why) {
    with_planner([&](const Planner& planner) { fail(planner, why); });
  }
  void give_up() {
    if (take()) options_ = {};
  }

 private:
  std::optional<Planner> take() {
    std::lock_guard lock(mutex_);
    return std::exchange(planner_, std::nullopt);
  }

  // Calls use(planner), unless the plan, or the device with all its plans, is gone.
  template <typename Use>
  void with_planner(const Use& use) {
    std::optional<Planner> planner = take();
    if (!planner) return;
    const std::shared_ptr<LateJobs::UnderWay> jobs = planner->late_jobs;
    if (!jobs->begin()) return;
    if (!late_->abandoned()) use(*planner);
    // Released before end() wakes threads that wait for the job. The plan may be gone; then this
    // releases its kernel too.
    late_.reset();
    options_ = {};
    planner.reset();
    jobs->end();
  }

  void fail(const Planner& planner, const std::string& why) {
    if (late_->abandoned()) return;
    planner.context->tally().add(base::Count::late_plans_failed);
    planner.noted->write_once(
        planner.log,
        fmt::format("a plan keeps its general kernel, as its own could not be obtained: {}",
                    why.substr(0, why.find('\n'))));
    late_->fail(why);
  }

  std::mutex mutex_;
  std::optional<Planner> planner_;  // guarded by mutex_
  const Problem problem_;
  PlanOptions options_;
  std::shared_ptr<LateKernel> late_;
};

// Whether the tiles of a pattern are found block by block, so that a list takes time to make.
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
  // Lists of blocks are made only once in this call, for the general kernel; the second time is on
  // another thread. No folder of tuned results is read in this call.
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
    // The problem has no general kernel, or it could not be compiled. The plan's own kernel may
    // still work.
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
  PlanOptions options = request.options;
  // A limit of 0 would mean no limit. A plan that needs no workspace also fits in 1 byte.
  options.max_workspace_bytes = std::max<std::int64_t>(1, static_cast<std::int64_t>(both));
  const auto job = std::make_shared<LateWork>(*this, request.problem, options, made.late);
  made.late->set_give_up([weak = std::weak_ptr(job)] {
    if (const auto there = weak.lock()) there->give_up();
  });
  context->tally().add(base::Count::general_plans);
  try {
    background.start([job] { job->compile(); },
                     [job] { job->refuse("the host's executor dropped the task"); });
  } catch (const std::exception& error) {
    job->refuse(fmt::format("it cannot be compiled on another thread: {}", error.what()));
  }
  return made;
}

}  // namespace annulus::planner
