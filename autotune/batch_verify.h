#ifndef ANNULUS_AUTOTUNE_BATCH_VERIFY_H_
#define ANNULUS_AUTOTUNE_BATCH_VERIFY_H_

// Compares a candidate's answers for requests of its class with the float64 oracle before its time
// counts. A small step stands for the steps of a batch: a request of one key, one whose keys are
// joined from parts, and one between, with everything that the problem has.

#include <memory>
#include <vector>

#include "autotune/batch_operands.h"
#include "autotune/verify.h"
#include "batch/batch_plan.h"

namespace annulus::autotune {

// The plan of a batch in which the class of a candidate has its configuration. Throws as
// batch::make_plan does.
batch::BatchPlanData plan_with(const attention::KernelConfig& config, const BatchProblem& problem,
                               const BatchOptions& options, const attention::DeviceLimits& limits);
// The class of the plan that a configuration is for. Requires: there is one.
const batch::ClassPlan& class_of(const batch::BatchPlanData& plan,
                                 const attention::KernelConfig& config);

// A step that is small enough to be simulated and compared, in a batch with the features of the
// target's: kernels are those of the target. It has the heads of two heads of K and V, or all where
// these see different keys; pages of up to 256 keys and blocks of up to 128, and up to four ranks.
// One of its requests is so long that the pattern hides keys from its last query, if one within the
// bounds and of moderate length is.
struct SmallStep {
  BatchProblem problem;
  std::vector<batch::StepRequest> requests;
};
SmallStep small_step(const tuned::BatchTarget& target);

class BatchVerifier {
 public:
  // Makes a small step of the target's class from `seed`, on the device, and the oracle's answers,
  // on so many threads; 0: one per processor. `kernels` must outlive it. Throws Error{kOutOfMemory,
  // kDevice, kFault, kCancelled}.
  BatchVerifier(device::ContextPointer context, jit::KernelCache& kernels,
                attention::DeviceLimits limits, const tuned::BatchTarget& target,
                std::uint64_t seed, int threads);
  ~BatchVerifier();

  // As Verifier::check. Counts the work of run(), and none of prepare().
  Verdict check(const attention::KernelConfig& config) const;

  const SmallStep& step() const { return step_; }
  // The plan that check() carries out. May be called from any thread. Throws as batch::make_plan.
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
