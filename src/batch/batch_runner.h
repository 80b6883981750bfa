#ifndef ANNULUS_BATCH_BATCH_RUNNER_H_
#define ANNULUS_BATCH_BATCH_RUNNER_H_

// A batch plan on a device: its kernels are loaded, its tables uploaded.

#include "annulus/batch.h"
#include "batch/batch_plan.h"
#include "device/buffer.h"
#include "device/launches.h"
#include "jit/kernel_cache.h"

namespace annulus::batch {

// Immutable; any number of threads may use it at a time.
class BatchRunner {
 public:
  // Gets the kernels, which may compile them, and waits for the upload.
  BatchRunner(const device::ContextPointer& context, jit::KernelCache& kernels, BatchPlanData plan);

  const BatchPlanData& plan() const { return plan_; }
  const device::ContextPointer& context() const { return context_; }
  // The kernel of requests with few queries.
  const jit::LoadedKernel& kernel() const { return *classes_.front().kernel.kernel; }
  std::int64_t device_bytes() const { return static_cast<std::int64_t>(tables_.bytes()); }

  // As BatchPlan::prepare and run. No allocation, no lock, no waiting.
  void prepare(device::LaunchSink& to, const BatchMetadata& metadata, void* workspace) const;
  void run(device::LaunchSink& to, const BatchOperands& operands, void* workspace) const;

  // Reads the status word of a workspace; waits for the default stream.
  BatchStatus status(const void* workspace) const;

 private:
  void check_workspace(const void* workspace) const;
  void check_extras(const BatchMetadata& metadata) const;
  void check(const BatchOperands& operands) const;
  // The kernels of a class, and what they are told of it.
  struct Class {
    jit::KernelLookup kernel, combine;
    kernels::BatchParams params{};  // all but the operands and the workspace
  };

  device::ContextPointer context_;
  BatchPlanData plan_;
  Problem largest_;  // largest_request(), made once because a run allocates nothing
  jit::KernelLookup prepare_, list_blocks_;
  std::vector<Class> classes_;  // those of the plan
  device::Buffer tables_;       // forms, the mask's lists, tables of the score
  kernels::PrepareParams prepare_params_{};
  kernels::ListBlocksParams list_params_{};
};

}  // namespace annulus::batch

#endif  // ANNULUS_BATCH_BATCH_RUNNER_H_
