#ifndef ANNULUS_BENCH_AHEAD_KERNELS_H_
#define ANNULUS_BENCH_AHEAD_KERNELS_H_

// Compiles the kernels of a program into a folder, so that the program also runs on a machine
// without NVRTC. There, ANNULUS_KERNELS names the folder.

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
  // `target` is an architecture or a simulated device. For an architecture ("sm_90a"), the result
  // is cubins that every known GPU of that architecture accepts. For a simulated device
  // ("sim:sm_90a"), the result is the PTX that it runs. Throws Error{kInvalidArgument} if `target`
  // is neither, and Error{kLibrary} if there is no NVRTC.
  explicit AheadKernels(const std::string& target);

  bool simulated() const { return compiler_->kind() == jit::ImageKind::kPtx; }
  // The limits of the devices for which the kernels are compiled: one or more, all of one
  // architecture.
  const std::vector<attention::DeviceLimits>& limits() const { return limits_; }
  // The compiler has the templates of the library.
  const std::shared_ptr<const jit::Compiler>& compiler() const { return compiler_; }

  // Adds a kernel that `compiler` compiles. A kernel that was added before is ignored.
  void add(const std::shared_ptr<const jit::Compiler>& compiler, jit::KernelSpec spec);

  // Compiles the added kernels, except those that the folder already has. Prints a line for each
  // kernel that fails, and the number of kernels. Returns whether the folder now has all of them.
  // Throws what jit::compile_ahead throws.
  bool compile_into(const std::string& folder) const;

 private:
  std::shared_ptr<const jit::Compiler> compiler_;
  std::vector<attention::DeviceLimits> limits_;
  std::set<base::Digest> known_;
  std::vector<jit::AheadJob> jobs_;
};

}  // namespace annulus::bench

#endif  // ANNULUS_BENCH_AHEAD_KERNELS_H_
