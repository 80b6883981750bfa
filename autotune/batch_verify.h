#ifndef ANNULUS_AUTOTUNE_BATCH_VERIFY_H_
#define ANNULUS_AUTOTUNE_BATCH_VERIFY_H_

// Compares a candidate's results for requests of its class with the float64 oracle before its time
// is measured. A small step represents the steps of a batch. It has a request with one key, a
// request whose keys are processed in several parts that are merged, and a request between the two.
// It has all features of the problem.

#include <memory>
#include <vector>

#include "autotune/batch_operands.h"
#include "autotune/verify.h"
#include "batch/batch_plan.h"

namespace annulus::autotune {

// The plan of a batch in which the candidate's class uses the candidate's configuration. Throws as
// batch::make_plan does.
batch::BatchPlanData plan_with(const attention::KernelConfig& config, const BatchProblem& problem,
                               const BatchOptions& options, const attention::DeviceLimits& limits);
// The class of the plan that the configuration belongs to. Requires: there is one.
const batch::ClassPlan& class_of(const batch::BatchPlanData& plan,
                                 const attention::KernelConfig& config);

// A step that is small enough to simulate and to compare. Its batch has the features of the
// target's batch, so its kernels are the target's kernels. It has the heads of two KV heads, or all
// heads if they see different keys. Pages have up to 256 keys, blocks up to 128, and there are up
// to four ranks. One request is long enough that the pattern hides keys from its last query, if a
// request of moderate length within the bounds can be.
struct SmallStep {
  BatchProblem problem;
  std::vector<batch::StepRequest> requests;
};
SmallStep small_step(const tuned::BatchTarget& target);

class BatchVerifier {
 public:
  // Creates a small step of the target's class from `seed` on the device. Computes the oracle's
  // results on `threads` threads, or on one for each processor if that is 0. `kernels` must outlive
  // this object. Throws Error{kOutOfMemory, kDevice, kFault, kCancelled}.
  BatchVerifier(device::ContextPointer context, jit::KernelCache& kernels,
                attention::DeviceLimits limits, const tuned::BatchTarget& target,
                std::uint64_t seed, int threads);
  ~BatchVerifier();

  // Checks a candidate in the same way as Verifier::check(). Counts the work of run() but not of
  // prepare().
  Verdict check(const attention::KernelConfig& config) const;

  const SmallStep& step() const { return step_; }
  // The plan that check() runs. May be called from any thread. Throws as batch::make_plan does.
  batch::BatchPlanData plan_of(const attention::KernelConfig& config) const;

 private:
  struct Data;
  Verdict run(const attention::KernelConfig& config) const;

  device::ContextPointer context_;
  jit::KernelCache& kernels_;
  attention::DeviceLimits limits_;
  BatchOptions options_;
  SmallStep step_;
  std::unique_ptr<Data> data_;
};

}  // namespace annulus::autotune

#endif  // ANNULUS_AUTOTUNE_BATCH_VERIFY_H_
