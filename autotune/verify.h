#ifndef ANNULUS_AUTOTUNE_VERIFY_H_
#define ANNULUS_AUTOTUNE_VERIFY_H_

// Holds a candidate against the float64 oracle before its time counts for anything. The operands
// and the oracle's answer are made once for all candidates of a shape.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "attention/kernels/kernel_work.h"
#include "attention/run/forward.h"
#include "autotune/parts.h"

namespace annulus::autotune {

// What one candidate did on all parts.
struct Verdict {
  std::optional<std::string>
      reason;                     // why it is dropped; nothing: its answers are within tolerance
  attention::KernelWork counted;  // on a simulated device
};

class Verifier {
 public:
  // Random operands of `seed` for each part, on the device, and the oracle's answers. `kernels`
  // must stay. Throws Error{kOutOfMemory, kDevice, kFault}.
  Verifier(device::ContextPointer context, jit::KernelCache& kernels,
           attention::DeviceLimits limits, const std::vector<Problem>& parts, std::uint64_t seed);
  ~Verifier();

  // Compiles, runs and compares. What the compiler or the driver refuses, what spills, what faults
  // on a simulated device and what is wrong is a reason. Throws Error{kFault} where the context
  // of a real device is lost, and Error{kOutOfMemory}.
  Verdict check(const attention::KernelConfig& config) const;

  const std::vector<Problem>& parts() const { return parts_; }

 private:
  struct Data;
  Verdict run(const attention::KernelConfig& config) const;

  device::ContextPointer context_;
  jit::KernelCache& kernels_;
  attention::DeviceLimits limits_;
  std::vector<Problem> parts_;
  std::vector<std::unique_ptr<Data>> data_;
};

// Why ptxas's work on a kernel is not wanted: spills, local memory, serialised instructions.
std::optional<std::string> why_costly(const jit::ResourceUsage& usage);

}  // namespace annulus::autotune

#endif  // ANNULUS_AUTOTUNE_VERIFY_H_
