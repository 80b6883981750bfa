#ifndef ANNULUS_JIT_MISSING_KERNEL_H_
#define ANNULUS_JIT_MISSING_KERNEL_H_

// The error of a kernel that is in no folder and cannot be compiled, and who wanted it.

#include <functional>
#include <string>

#include "jit/compiler.h"
#include "jit/disk_cache.h"
#include "jit/kernel_folders.h"

namespace annulus::jit {

// While it lives, says what this thread wants kernels for, such as the line of a file of shapes
// from which the kernel could be compiled ahead. The innermost one is told.
//
//   const jit::KernelsFor wanted([&] { return "--heads 8 --seq 4096"; });
//   kernels.get(spec);
class KernelsFor {
 public:
  using Describe = std::function<std::string()>;
  // `describe` is called only where a kernel is missing. What it throws is dropped.
  explicit KernelsFor(Describe describe);
  ~KernelsFor();
  KernelsFor(const KernelsFor&) = delete;
  KernelsFor& operator=(const KernelsFor&) = delete;

  // Empty where nobody said.
  static std::string innermost() noexcept;

 private:
  Describe describe_;
  const KernelsFor* outer_;
};

// Throws Error{kLibrary}, which names the kernel, what it was wanted for, where it was looked for,
// why it is not compiled and what to do. `refused`: what the driver said of the last kernel that
// was found; empty where none was.
[[noreturn]] void fail_missing(const KernelSpec& spec, const Compiler& compiler, DiskCache& disk,
                               KernelFolders& folders, const std::string& refused);

}  // namespace annulus::jit

#endif  // ANNULUS_JIT_MISSING_KERNEL_H_
