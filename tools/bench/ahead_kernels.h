#ifndef ANNULUS_BENCH_AHEAD_KERNELS_H_
#define ANNULUS_BENCH_AHEAD_KERNELS_H_

// Compiles the kernels of a program into a folder, so that the program also runs where there is no
// NVRTC. ANNULUS_KERNELS names the folder there.

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "attention/kernels/device_limits.h"
#include "base/hash.h"
#include "jit/compile_ahead.h"

namespace annulus::bench {

class AheadKernels {
 public:
  // `target` is an architecture ("sm_90a"), for cubins that every known GPU of it takes, or a
  // simulated device ("sim:sm_90a"), for the PTX that it runs. Throws Error{kInvalidArgument} where
  // it is neither, and Error{kLibrary} where there is no NVRTC.
  explicit AheadKernels(const std::string& target);

  bool simulated() const { return compiler_->kind() == jit::ImageKind::kPtx; }
  // Of the devices that the kernels are for: one or more, all of one architecture.
  const std::vector<attention::DeviceLimits>& limits() const { return limits_; }
  // It has the templates of the library.
  const std::shared_ptr<const jit::Compiler>& compiler() const { return compiler_; }

  // Adds a kernel that `compiler` compiles. A kernel that was added before is left out.
  void add(const std::shared_ptr<const jit::Compiler>& compiler, jit::KernelSpec spec);

  // Compiles what was added, but for what the folder has. Prints a line for each kernel that fails,
  // and how many there are. Returns whether the folder has all of them now. Throws what
  // jit::compile_ahead throws.
  bool compile_into(const std::string& folder) const;

 private:
  std::shared_ptr<const jit::Compiler> compiler_;
  std::vector<attention::DeviceLimits> limits_;
  std::set<base::Digest> known_;
  std::vector<jit::AheadJob> jobs_;
};

}  // namespace annulus::bench

#endif  // ANNULUS_BENCH_AHEAD_KERNELS_H_
