#ifndef ANNULUS_AUTOTUNE_AHEAD_COMPILER_H_
#define ANNULUS_AUTOTUNE_AHEAD_COMPILER_H_

// Compiles the kernels that a search will probably need next, while the device measures other
// kernels.

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
  // Returns the kernels that are compiled for a configuration. It is called from several threads at
  // a time. If it throws, the configuration is not compiled ahead.
  using KernelsOf =
      std::function<std::vector<jit::KernelSpec>(const attention::KernelConfig& config)>;

  // Compiles into the disk cache of `kernels`, which must outlive this object. It loads nothing,
  // because loading would disturb the measurements. Starts up to `threads` threads, fewer if the
  // system refuses them, and none if there is no disk cache or no NVRTC.
  AheadCompiler(const jit::KernelCache& kernels, KernelsOf kernels_of, int threads);
  // Waits for the compilations that are in progress.
  ~AheadCompiler();
  AheadCompiler(const AheadCompiler&) = delete;
  AheadCompiler& operator=(const AheadCompiler&) = delete;

  // Sets the configurations that are wanted next, in this order. Those that were wanted before and
  // are not begun are dropped. Does not wait.
  void want(std::span<const attention::KernelConfig> configs);

 private:
  void work();
  void compile(const attention::KernelConfig& config) const;

  const jit::KernelCache& kernels_;
  KernelsOf kernels_of_;
  std::mutex mutex_;  // guards the members below, except the threads
  std::condition_variable wanted_;
  std::deque<attention::KernelConfig> queue_;
  std::unordered_set<std::string> begun_;  // the texts of these configurations
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace annulus::autotune

#endif  // ANNULUS_AUTOTUNE_AHEAD_COMPILER_H_
