#ifndef ANNULUS_BATCH_BATCH_RUNNER_H_
#define ANNULUS_BATCH_BATCH_RUNNER_H_

// A batch plan on a device: its kernels are loaded, and its tables are uploaded.

#include "annulus/batch.h"
#include "batch/batch_plan.h"
#include "device/buffer.h"
#include "device/launches.h"
#include "jit/kernel_cache.h"

namespace annulus::batch {

// Immutable; any number of threads may use it at the same time.
class BatchRunner {
 public:
  // Gets the kernels, which may have to be compiled, and waits for the upload.
  BatchRunner(const device::ContextPointer& context, jit::KernelCache& kernels, BatchPlanData plan);

  const BatchPlanData& plan() const { return plan_; }
  const device::ContextPointer& context() const { return context_; }
  // The kernel for requests with few queries.
  const jit::LoadedKernel& kernel() const { return *classes_.front().kernel.kernel; }
  std::int64_t device_bytes() const { return static_cast<std::int64_t>(tables_.bytes()); }

  // Like prepare and run of BatchPlan. They do not allocate, lock or wait.
  void prepare(device::LaunchSink& to, const BatchMetadata& metadata, void* workspace) const;
  void run(device::LaunchSink& to, const BatchOperands& operands, void* workspace) const;

  // Reads the status word of a workspace, and waits for the default stream to do so.
  BatchStatus status(const void* workspace) const;

 private:
  void check_workspace(const void* workspace) const;
  void check_extras(const BatchMetadata& metadata) const;
  void check(const BatchOperands& operands) const;
  // The kernels of a class, and their parameters.
  struct Class {
    jit::KernelLookup kernel, combine;
    kernels::BatchParams params{};  // everything but the operands and the workspace
  };

  device::ContextPointer context_;
  BatchPlanData plan_;
  Problem largest_;  // largest_request(); it is made once, because a run allocates nothing
  jit::KernelLookup prepare_, list_blocks_;
  std::vector<Class> classes_;  // the classes of the plan
  device::Buffer tables_;       // forms, the mask's lists, and tables of the score
  kernels::PrepareParams prepare_params_{};
  kernels::ListBlocksParams list_params_{};
};

}  // namespace annulus::batch

#endif  // ANNULUS_BATCH_BATCH_RUNNER_H_
