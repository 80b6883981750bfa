#ifndef ANNULUS_JIT_COMPILE_AHEAD_H_
#define ANNULUS_JIT_COMPILE_AHEAD_H_

// Compiles kernels into a folder that will be shipped.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "annulus/types.h"
#include "jit/compiler.h"

namespace annulus::jit {

// A kernel to compile, and its compiler.
struct AheadJob {
  std::shared_ptr<const Compiler> compiler;
  KernelRequest request;
};

// For example "mma_forward (mma m64 n64 w4 s2 x3) for sm_80, cubin".
std::string describe(const AheadJob& job);

struct AheadOptions {
  std::string folder;  // created with mode 0755, and its files with 0644, minus the umask
  int threads = 0;     // 0: one for each processor
  // called from any thread, several at a time; null: never cancelled
  std::function<bool()> cancelled;
  // Called on one thread at a time, after each job.
  std::function<void(std::size_t done, const AheadJob& last)> progress;
};

struct AheadFailure {
  std::size_t job = 0;
  ErrorCode code = ErrorCode::kInternal;
  std::string error;
};

struct AheadResult {
  std::int64_t compiled = 0;
  std::int64_t there = 0;  // existed before, from the same compiler
  std::int64_t left = 0;   // jobs that were not begun, because `cancelled` returned true
  std::int64_t bytes = 0;  // the size of the files of compiled and existing kernels
  std::vector<AheadFailure> failures;  // sorted by job
};

// Each job is a different kernel. Throws Error{kInvalidArgument} if the folder is not an absolute
// path, and Error{kFile} if the folder cannot be used or written to. Kernels that were compiled
// before the error stay.
AheadResult compile_ahead(const std::vector<AheadJob>& jobs, const AheadOptions& options);

}  // namespace annulus::jit

#endif  // ANNULUS_JIT_COMPILE_AHEAD_H_
