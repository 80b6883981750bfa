#ifndef ANNULUS_ATTENTION_RUN_BRANCHED_FORWARD_H_
#define ANNULUS_ATTENTION_RUN_BRANCHED_FORWARD_H_

// A problem that is ready to run and whose pattern may be a sum. The branches of a sum run one
// after another, and each continues from the state that the previous branch wrote. So a key counts
// once for each branch that sees it. Any other pattern is a single branch.

#include <cstdint>
#include <span>
#include <vector>

#include "attention/run/forward.h"

namespace annulus::attention {

// Each branch as a problem of its own, in the order in which they run. Every branch but the first
// carries a state in, every branch but the last carries a state out, and only the last one writes
// LSE.
std::vector<Problem> branch_problems(const Problem& problem);

// One plan for each branch. Throws as make_plan does.
std::vector<LaunchPlan> make_branch_plans(const Problem& problem, const Choice& choice,
                                          const DeviceLimits& limits, const PlanForm& form = {},
                                          TileCache* cache = nullptr);

// The workspace that runs of these plans need: the state between branches, unless there is one
// branch or the caller's state_out can be used for it, and after that the workspace of a branch,
// which all branches share. If the branches launch the same parts of the batches, the memory holds
// the state of one part: all branches of a part run before the next part.
struct BranchWorkspace {
  std::int64_t state_batches = 0;  // batches of the state between branches; 0: there is no such
                                   // state
  std::int64_t state_bytes = 0;
  std::int64_t bytes = 0;
};
BranchWorkspace workspace_of(const Problem& problem, std::span<const LaunchPlan> plans);

// Immutable; any number of threads may run it at the same time.
class BranchedForward {
 public:
  // Requires: plans are the result of make_branch_plans for this problem.
  BranchedForward(const device::ContextPointer& context, jit::KernelCache& kernels,
                  const Problem& problem, std::vector<LaunchPlan> plans,
                  DeviceTileCache* lists = nullptr);

  const Problem& problem() const { return problem_; }
  const std::vector<Forward>& branches() const { return branches_; }

  std::int64_t workspace_bytes() const { return workspace_.bytes; }

  // Like Forward::run. The workspace is 16-byte aligned.
  void run(abi::CUstream stream, const Operands& operands, void* workspace) const {
    device::StreamSink to(stream);
    put(to, operands, workspace);
  }
  // Sends the launches that run() would queue to `to` instead.
  void put(device::LaunchSink& to, const Operands& operands, void* workspace) const;

 private:
  StatePointers between(const Operands& operands, void* workspace, const BatchRange& range) const;
  void put(device::LaunchSink& to, const Operands& operands, void* workspace,
           const BatchRange& range) const;

  Problem problem_;
  BranchWorkspace workspace_;
  std::vector<Forward> branches_;
};

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_RUN_BRANCHED_FORWARD_H_
