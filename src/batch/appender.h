#ifndef ANNULUS_BATCH_APPENDER_H_
#define ANNULUS_BATCH_APPENDER_H_

// Appends new keys and values (annulus/batch.h) on a device. The kernel is loaded, and the
// frequencies are uploaded.

#include <cstdint>
#include <vector>

#include "annulus/batch.h"
#include "device/buffer.h"
#include "device/launches.h"
#include "jit/kernel_cache.h"
#include "params/append_params.h"

namespace annulus::batch {

// The problem, with defaults filled in.
AppendProblem with_defaults(AppendProblem problem);

// The frequency of each pair in turns per position. A whole turn is 2^64, and whole turns are
// dropped.
std::vector<std::uint64_t> turns_of(const Rotary& rotary);

// The kernel's template arguments. Requires: with_defaults().
jit::KernelSpec append_spec(const AppendProblem& problem, jit::Arch arch);

// Immutable; any number of threads may use it at the same time.
class Appender {
 public:
  // Gets the kernel, which may have to be compiled, and waits for the upload. Requires:
  // validate(problem) passes.
  Appender(const device::ContextPointer& context, jit::KernelCache& kernels, jit::Arch arch,
           const AppendProblem& problem);

  const AppendProblem& problem() const { return problem_; }
  const jit::KernelSpec& spec() const { return spec_; }
  const jit::LoadedKernel& kernel() const { return *kernel_.kernel; }
  std::int64_t device_bytes() const { return static_cast<std::int64_t>(turns_.bytes()); }

  // Like AppendPlan::run. It does not allocate, lock or wait.
  void run(device::LaunchSink& to, const AppendOperands& operands) const;
  void clear_status(device::LaunchSink& to, std::uint32_t* status) const;

  // Reads a status word, and waits for the default stream to do so.
  AppendStatus status(const std::uint32_t* status) const;

 private:
  void check(const AppendOperands& operands) const;
  void check_places(const AppendOperands& operands) const;
  void check_rotation(const AppendOperands& operands) const;

  device::ContextPointer context_;
  AppendProblem problem_;
  jit::KernelSpec spec_;
  jit::KernelLookup kernel_;
  device::Buffer turns_;
  kernels::AppendParams params_{};  // everything but the operands
};

}  // namespace annulus::batch

#endif  // ANNULUS_BATCH_APPENDER_H_
