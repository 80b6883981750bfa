#include "attention/run/branched_forward.h"

#include <algorithm>
#include <utility>

#include "attention/kernels/launch.h"
#include "base/math.h"

namespace annulus::attention {
namespace {

constexpr std::int64_t kAlignment = 256;

}  // namespace

// Every branch but the first carries a state in, every branch but the last carries one out, and
// only the last one writes LSE.
std::vector<LaunchPlan> make_branch_plans(const Problem& problem, const Choice& choice,
                                          const DeviceLimits& limits, const PlanForm& form,
                                          TileCache* cache) {
  const std::vector<Pattern> branches = problem.pattern.branches();
  std::vector<LaunchPlan> plans;
  for (std::size_t i = 0; i < branches.size(); ++i) {
    const bool last = i + 1 == branches.size();
    Problem branch = problem;
    branch.pattern = branches[i];
    branch.carry_in = problem.carry_in || i > 0;
    branch.carry_out = problem.carry_out || !last;
    branch.want_lse = problem.want_lse && last;
    plans.push_back(make_plan(branch, choice, limits, form, cache));
  }
  return plans;
}

BranchedForward::BranchedForward(const device::ContextPointer& context, jit::KernelCache& kernels,
                                 const Problem& problem, std::vector<LaunchPlan> plans,
                                 DeviceTileCache* lists)
    : problem_(problem) {
  for (LaunchPlan& plan : plans) branches_.emplace_back(context, kernels, std::move(plan), lists);
  if (branches_.size() > 1 && !problem.carry_out) {
    const std::int64_t rows = problem.batch * problem.heads * problem.seq_q;
    state_bytes_ = rows * (problem.dim_v + 2) * static_cast<std::int64_t>(sizeof(float));
  }
  std::int64_t of_branch = 0;
  for (const Forward& branch : branches_) {
    of_branch = std::max(of_branch, branch.plan().workspace_bytes);
  }
  if (of_branch > 0) state_bytes_ = base::round_up(state_bytes_, kAlignment);
  workspace_bytes_ = state_bytes_ + of_branch;
}

// The state between branches: the caller's state_out, or memory of the workspace. There acc comes
// first, whose rows are multiples of 128 bytes, so that m and l behind it are aligned.
StatePointers BranchedForward::between(const Operands& operands, void* workspace) const {
  if (problem_.carry_out) return operands.state_out;
  const std::int64_t rows = problem_.batch * problem_.heads * problem_.seq_q;
  auto* const acc = static_cast<float*>(workspace);
  float* const m = acc + rows * problem_.dim_v;
  return {acc, m, m + rows};
}

void BranchedForward::put(device::LaunchSink& to, const Operands& operands, void* workspace) const {
  const Forward& first = branches_.front();
  if (branches_.size() == 1) return first.put(to, operands, first.lists(), workspace);
  validate(problem_, operands);
  // Only the last branch writes O, but if O's strides are wrong, no branch may run.
  for (const Forward& branch : branches_) {
    check_strides(branch.plan().config, problem_, operands);
  }
  const StatePointers state = between(operands, workspace);
  for (std::size_t i = 0; i < branches_.size(); ++i) {
    Operands of_branch = operands;
    if (i > 0) of_branch.state_in = state;
    if (i + 1 < branches_.size()) {
      of_branch.o = nullptr;
      of_branch.lse = nullptr;
      of_branch.state_out = state;
    }
    branches_[i].put(to, of_branch, branches_[i].lists(),
                     static_cast<std::byte*>(workspace) + state_bytes_);
  }
}

}  // namespace annulus::attention
