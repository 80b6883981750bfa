#include "attention/run/branched_forward.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "attention/kernels/launch.h"
#include "base/math.h"

namespace annulus::attention {
namespace {

constexpr std::int64_t kAlignment = 256;

}  // namespace

std::vector<Problem> branch_problems(const Problem& problem) {
  const std::vector<Pattern> patterns = problem.pattern.branches();
  std::vector<Problem> branches;
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    const bool last = i + 1 == patterns.size();
    Problem& branch = branches.emplace_back(problem);
    branch.pattern = patterns[i];
    branch.carry_in = problem.carry_in || i > 0;
    branch.carry_out = problem.carry_out || !last;
    branch.want_lse = problem.want_lse && last;
  }
  return branches;
}

std::vector<LaunchPlan> make_branch_plans(const Problem& problem, const Choice& choice,
                                          const DeviceLimits& limits, const PlanForm& form,
                                          TileCache* cache) {
  std::vector<LaunchPlan> plans;
  for (const Problem& branch : branch_problems(problem)) {
    plans.push_back(make_plan(branch, choice, limits, form, cache));
  }
  return plans;
}

// If branches have different launches, because the grid of one holds fewer batches, the state
// between them covers all batches.
BranchWorkspace workspace_of(const Problem& problem, std::span<const LaunchPlan> plans) {
  BranchWorkspace workspace;
  if (plans.size() > 1 && !problem.carry_out) {
    const Launches& launches = plans.front().launches;
    const auto same = [&](const LaunchPlan& plan) { return plan.launches == launches; };
    workspace.state_batches = !launches.empty() && std::ranges::all_of(plans, same)
                                  ? launches.front().batches
                                  : problem.batch;
    workspace.state_bytes = workspace.state_batches * problem.heads * problem.seq_q *
                            (problem.dim_v + 2) * static_cast<std::int64_t>(sizeof(float));
  }
  std::int64_t of_branch = 0;
  for (const LaunchPlan& plan : plans) of_branch = std::max(of_branch, plan.workspace_bytes);
  if (of_branch > 0) workspace.state_bytes = base::round_up(workspace.state_bytes, kAlignment);
  workspace.bytes = workspace.state_bytes + of_branch;
  return workspace;
}

BranchedForward::BranchedForward(const device::ContextPointer& context, jit::KernelCache& kernels,
                                 const Problem& problem, std::vector<LaunchPlan> plans,
                                 DeviceTileCache* lists)
    : problem_(problem), workspace_(workspace_of(problem, plans)) {
  for (LaunchPlan& plan : plans) branches_.emplace_back(context, kernels, std::move(plan), lists);
}

// The state between branches: the caller's state_out, or memory of the workspace. In the workspace
// acc comes first; its rows are multiples of 128 bytes, so m and l after it are aligned. Launches
// count rows from the first of all batches. So if the memory holds the state of only a part of the
// batches, the addresses passed are those of the rows of batch 0, which may be outside of any
// memory. They are computed as integers for this reason.
StatePointers BranchedForward::between(const Operands& operands, void* workspace,
                                       const BatchRange& range) const {
  if (problem_.carry_out) return operands.state_out;
  const std::int64_t rows_of_batch = problem_.heads * problem_.seq_q;
  const std::int64_t rows = workspace_.state_batches * rows_of_batch;
  const std::int64_t before =
      workspace_.state_batches < problem_.batch ? range.first_batch * rows_of_batch : 0;
  const auto part = [&](std::int64_t begin, std::int64_t skipped) {
    constexpr auto kFloat = static_cast<std::int64_t>(sizeof(float));
    const auto base = reinterpret_cast<std::uintptr_t>(workspace);
    return reinterpret_cast<float*>(base + static_cast<std::uintptr_t>((begin - skipped) * kFloat));
  };
  return {part(0, before * problem_.dim_v), part(rows * problem_.dim_v, before),
          part(rows * (problem_.dim_v + 1), before)};
}

void BranchedForward::put(device::LaunchSink& to, const Operands& operands, void* workspace) const {
  const Forward& first = branches_.front();
  if (branches_.size() == 1) return first.put(to, operands, first.lists(), workspace);
  validate(problem_, operands);
  // Only the last branch writes O, but if O's strides are wrong, no branch may be launched.
  for (const Forward& branch : branches_) {
    check_strides(branch.plan().config, problem_, operands);
  }
  if (workspace_.state_batches == 0 || workspace_.state_batches == problem_.batch) {
    return put(to, operands, workspace, {0, problem_.batch});
  }
  const Launches& launches = first.plan().launches;
  for (std::int64_t i = 0; i < launches.size(); ++i) put(to, operands, workspace, launches[i]);
}

// Queues all branches of one part of the batches, or of all batches.
void BranchedForward::put(device::LaunchSink& to, const Operands& operands, void* workspace,
                          const BatchRange& range) const {
  const StatePointers state = between(operands, workspace, range);
  void* const behind = static_cast<std::byte*>(workspace) + workspace_.state_bytes;
  for (std::size_t i = 0; i < branches_.size(); ++i) {
    Operands of_branch = operands;
    if (i > 0) of_branch.state_in = state;
    if (i + 1 < branches_.size()) {
      of_branch.o = nullptr;
      of_branch.lse = nullptr;
      of_branch.state_out = state;
    }
    const Forward& branch = branches_[i];
    const Launches& launches = branch.plan().launches;
    const std::int64_t end = launches.from(range.first_batch + range.batches);
    for (std::int64_t at = launches.from(range.first_batch); at < end; ++at) {
      branch.put_range(to, of_branch, branch.lists(), launches[at], behind);
    }
  }
}

}  // namespace annulus::attention
