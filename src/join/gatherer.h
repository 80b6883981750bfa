#ifndef ANNULUS_JOIN_GATHERER_H_
#define ANNULUS_JOIN_GATHERER_H_

// Sends the rows of a rank's heads to all ranks, so that every rank has all heads (annulus/join.h).

#include "annulus/join.h"
#include "join/slices.h"

namespace annulus::join {

class Gatherer {
 public:
  // Gets the kernels. Requires: validate(problem) passes, and there are 1 to kMaxMergeInputs
  // ranks.
  Gatherer(jit::KernelCache& kernels, jit::Arch arch, const GatherProblem& problem, int ranks,
           int rank);

  const GatherProblem& problem() const { return problem_; }
  std::int64_t workspace_bytes() const { return workspace_bytes_; }

  // Implements GatherPlan::run.
  void run(device::LaunchSink& to, const GatherOperands& operands, void* workspace,
           const Exchange& exchange) const;

 private:
  Slices cut(std::int64_t rows) const;
  void check(const GatherOperands& operands, const void* workspace) const;

  GatherProblem problem_;
  int ranks_;
  int rank_;
  std::int64_t heads_;  // the number of heads of this rank
  std::int64_t workspace_bytes_;
  SliceMover pack_, unpack_;
};

}  // namespace annulus::join

#endif  // ANNULUS_JOIN_GATHERER_H_
