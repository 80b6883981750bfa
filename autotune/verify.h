#ifndef ANNULUS_AUTOTUNE_VERIFY_H_
#define ANNULUS_AUTOTUNE_VERIFY_H_

// Compares a candidate's results with the float64 oracle before its time is measured. The operands
// and the oracle's results are made once for all candidates of a shape.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "annulus/oracle.h"
#include "attention/kernels/kernel_work.h"
#include "attention/run/branched_forward.h"
#include "autotune/parts.h"

namespace annulus::autotune {

// The result of one candidate on all parts.
struct Verdict {
  // the reason why it is dropped; no value if its results are within tolerance
  std::optional<std::string> reason;
  attention::KernelWork counted;  // the work counted on a simulated device; else empty
  // If the reason is an exception, its code. A wrong result is an internal error of this library.
  ErrorCode code = ErrorCode::kInternal;
};

class Verifier {
 public:
  // Creates random operands from `seed` for each part on the device. Computes the oracle's results
  // on `threads` threads, or on one for each processor if that is 0. `kernels` must outlive this
  // object. Throws Error{kOutOfMemory, kDevice, kFault, kCancelled}.
  Verifier(device::ContextPointer context, jit::KernelCache& kernels,
           attention::DeviceLimits limits, const std::vector<Problem>& parts, std::uint64_t seed,
           int threads = 0);

  ~Verifier();

  // Compiles, runs and compares. A candidate is dropped if the compiler or the driver refuses it,
  // if it spills (why_costly), if it faults on a simulated device, or if its result is wrong.
  // Throws Error{kFault} if the context of a real device is lost, and Error{kOutOfMemory}.
  Verdict check(const attention::KernelConfig& config) const;

  // Compiles and loads what check() runs, without running it. Errors are ignored, because check()
  // reports them.
  void compile(const attention::KernelConfig& config) const;

  const std::vector<Problem>& parts() const { return parts_; }

  // The kernels that check() uses for a configuration. May be called from any thread. Throws as
  // attention::make_plan does.
  std::vector<jit::KernelSpec> kernels_of(const attention::KernelConfig& config) const;

 private:
  struct Data;
  Verdict run(const attention::KernelConfig& config) const;

  device::ContextPointer context_;
  jit::KernelCache& kernels_;
  attention::DeviceLimits limits_;
  std::vector<Problem> parts_;
  std::vector<std::unique_ptr<Data>> data_;
};

// Returns the result of `run`. If it throws because the compiler or the driver refuses a candidate,
// or because the candidate faults on a simulated device, the error becomes the reason to drop it,
// and the device's fault is cleared. All other errors are thrown again.
Verdict judged(const device::Context& context, const std::function<Verdict()>& run);

// Compiles and loads kernels. Errors are ignored.
void compile_for(jit::KernelCache& kernels,
                 const std::function<std::vector<jit::KernelSpec>()>& specs);

// The reason why a result differs from the oracle's, or no value.
std::optional<std::string> why_wrong(const Comparison& comparison);

// The reason why a kernel's machine code is not acceptable: spills, local memory, serialised
// instructions. A configuration that may spill (attention::why_spills) is allowed kMaxSpilledBytes.
std::optional<std::string> why_costly(const jit::ResourceUsage& usage, bool may_spill);

}  // namespace annulus::autotune

#endif  // ANNULUS_AUTOTUNE_VERIFY_H_
