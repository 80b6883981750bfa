#ifndef ANNULUS_AUTOTUNE_VERIFY_H_
#define ANNULUS_AUTOTUNE_VERIFY_H_

// Compares a candidate's answers with the float64 oracle before its time counts. The operands and
// the oracle's answer are made once for all candidates of a shape.

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
  std::optional<std::string> reason;  // why it is dropped; empty: its answers are within tolerance
  attention::KernelWork counted;      // work counted on a simulated device; else empty
  // The code is that of what was thrown where that is the reason; a wrong answer is an error of
  // this library.
  ErrorCode code = ErrorCode::kInternal;
};

class Verifier {
 public:
  // Makes random operands from `seed` for each part, on the device, and the oracle's answers, on so
  // many threads; 0: one per processor. `kernels` must outlive it. Throws Error{kOutOfMemory,
  // kDevice, kFault, kCancelled}.
  Verifier(device::ContextPointer context, jit::KernelCache& kernels,
           attention::DeviceLimits limits, const std::vector<Problem>& parts, std::uint64_t seed,
           int threads = 0);

  ~Verifier();

  // Compiles, runs and compares. The reason to drop a candidate is that the compiler or the driver
  // refuses it, that it spills (why_costly), that it faults on a simulated device, or that its
  // answer is wrong. Throws Error{kFault} where the context of a real device is lost, and
  // Error{kOutOfMemory}.
  Verdict check(const attention::KernelConfig& config) const;

  // Compiles and loads what check() runs, without running it. What fails is for check() to say.
  void compile(const attention::KernelConfig& config) const;

  const std::vector<Problem>& parts() const { return parts_; }

  // The kernels that check() gets for a configuration. May be called from any thread. Throws as
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

// What `run` returns. Of what it throws, that the compiler or the driver refuses a candidate, or
// that it faults on a simulated device, whose fault is forgotten then, is the reason to drop it;
// all else is thrown on.
Verdict judged(const device::Context& context, const std::function<Verdict()>& run);

// Compiles and loads kernels, as far as that can be done.
void compile_for(jit::KernelCache& kernels,
                 const std::function<std::vector<jit::KernelSpec>()>& specs);

// Why an answer is not the oracle's, or nothing.
std::optional<std::string> why_wrong(const Comparison& comparison);

// Why a kernel's machine code is not acceptable: spills, local memory, serialised instructions. A
// configuration that may spill (attention::why_spills) has kMaxSpilledBytes.
std::optional<std::string> why_costly(const jit::ResourceUsage& usage, bool may_spill);

}  // namespace annulus::autotune

#endif  // ANNULUS_AUTOTUNE_VERIFY_H_
