#ifndef ANNULUS_JIT_MISSING_KERNEL_H_
#define ANNULUS_JIT_MISSING_KERNEL_H_

// The error for a kernel that is in no folder and cannot be compiled. It states what needed the
// kernel.

#include <functional>
#include <string>

#include "jit/compiler.h"
#include "jit/disk_cache.h"
#include "jit/kernel_folders.h"

namespace annulus::jit {

// States what this thread needs kernels for, during the lifetime of the object. An example is the
// line of a file of shapes from which the kernel could be compiled ahead. If several objects exist,
// the error uses the innermost one.
//
//   const jit::KernelsFor wanted([&] { return "--heads 8 --seq 4096"; });
//   kernels.get(spec);
class KernelsFor {
 public:
  using Describe = std::function<std::string()>;
  // `describe` is called only if a kernel is missing. Its exceptions are ignored.
  explicit KernelsFor(Describe describe);
  ~KernelsFor();
  KernelsFor(const KernelsFor&) = delete;
  KernelsFor& operator=(const KernelsFor&) = delete;

  // Empty if there is no such object.
  static std::string innermost() noexcept;

 private:
  Describe describe_;
  const KernelsFor* outer_;
};

// Throws Error{kLibrary}. The message has the kernel, its purpose, the places that were searched,
// the reason why it is not compiled, and the remedy. `refused` is the driver's error for the last
// kernel that was found; empty if none was found.
[[noreturn]] void fail_missing(const KernelSpec& spec, const Compiler& compiler, DiskCache& disk,
                               KernelFolders& folders, const std::string& refused);

}  // namespace annulus::jit

#endif  // ANNULUS_JIT_MISSING_KERNEL_H_
