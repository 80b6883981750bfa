#ifndef ANNULUS_AUTOTUNE_AHEAD_COMPILER_H_
#define ANNULUS_AUTOTUNE_AHEAD_COMPILER_H_

// Compiles the kernels that a search will want next, while the device measures others.

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

#include "attention/kernels/kernel_config.h"
#include "jit/kernel_cache.h"

namespace annulus::autotune {

class AheadCompiler {
 public:
  // The kernels that are compiled for a configuration; called from several threads at a time. What
  // it throws makes the configuration one that is not compiled ahead.
  using KernelsOf =
      std::function<std::vector<jit::KernelSpec>(const attention::KernelConfig& config)>;

  // Compiles into the disk cache of `kernels`, which must outlive it, and loads nothing, as that
  // would disturb what is measured. Starts up to `threads` threads, fewer where the system refuses
  // them, and none where there is no disk cache or no NVRTC.
  AheadCompiler(const jit::KernelCache& kernels, KernelsOf kernels_of, int threads);
  // Waits for what is being compiled.
  ~AheadCompiler();
  AheadCompiler(const AheadCompiler&) = delete;
  AheadCompiler& operator=(const AheadCompiler&) = delete;

  // These are wanted next, in this order. What was wanted before and is not begun is forgotten.
  // Does not wait.
  void want(std::span<const attention::KernelConfig> configs);

 private:
  void work();
  void compile(const attention::KernelConfig& config) const;

  const jit::KernelCache& kernels_;
  KernelsOf kernels_of_;
  std::mutex mutex_;  // guards what follows, but for the threads
  std::condition_variable wanted_;
  std::deque<attention::KernelConfig> queue_;
  std::unordered_set<std::string> begun_;  // by the configuration's text
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace annulus::autotune

#endif  // ANNULUS_AUTOTUNE_AHEAD_COMPILER_H_
