#ifndef ANNULUS_BATCH_MERGER_H_
#define ANNULUS_BATCH_MERGER_H_

// Merges the results of attention over several sets of keys (annulus/merge.h) on a device. The
// kernel is loaded.

#include "annulus/merge.h"
#include "device/launches.h"
#include "jit/kernel_cache.h"
#include "params/merge_params.h"

namespace annulus::batch {

// The kernel's template arguments.
jit::KernelSpec merge_spec(const MergeProblem& problem, jit::Arch arch);

// A tensor [max_rows, heads, dim] whose rows a merge, a join or a gather moves.
struct MovedRows {
  std::int64_t heads;
  std::int64_t dim;
  Dtype dtype;
  std::int64_t max_rows;
};
// Throws Error{kInvalidArgument} and Error{kUnsupported} for tensors that no kernel moves. `tensor`
// and `dim_name` are the names of the tensor and of its head dim in errors: "O", "dim_v".
void check_moved(const char* tensor, const char* dim_name, const MovedRows& rows);

// Immutable; any number of threads may use it at the same time.
class Merger {
 public:
  // Gets the kernel, which may have to be compiled. Requires: validate(problem) passes.
  Merger(jit::KernelCache& kernels, jit::Arch arch, const MergeProblem& problem);

  const MergeProblem& problem() const { return problem_; }
  const jit::KernelSpec& spec() const { return spec_; }
  const jit::LoadedKernel& kernel() const { return *kernel_.kernel; }
  std::int64_t ctas() const { return ctas_; }

  // Like MergePlan::run. It does not allocate, lock or wait.
  void run(device::LaunchSink& to, const MergeOperands& operands) const;
  // Merges `rows` rows, from 1 to max_rows, with a launch of that size.
  void run(device::LaunchSink& to, const MergeOperands& operands, std::int64_t rows) const;

 private:
  void check(const MergeOperands& operands, std::int64_t rows) const;

  MergeProblem problem_;
  jit::KernelSpec spec_;
  jit::KernelLookup kernel_;
  std::int64_t ctas_ = 0;
  kernels::MergeParams params_{};  // everything but the operands
};

}  // namespace annulus::batch

#endif  // ANNULUS_BATCH_MERGER_H_
