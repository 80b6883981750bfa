#include "autotune/ahead_compiler.h"

#include <exception>
#include <utility>

namespace annulus::autotune {

AheadCompiler::AheadCompiler(const jit::KernelCache& kernels, KernelsOf kernels_of, int threads)
    : kernels_(kernels), kernels_of_(std::move(kernels_of)) {
  if (!kernels.disk().usable() || !kernels.compiler().compiles()) return;
  try {
    threads_.reserve(static_cast<std::size_t>(threads));
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
  } catch (const std::exception&) {  // the search compiles the remaining kernels itself
  }
}

AheadCompiler::~AheadCompiler() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wanted_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void AheadCompiler::want(std::span<const attention::KernelConfig> configs) {
  if (threads_.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    queue_.assign(configs.begin(), configs.end());
  }
  wanted_.notify_all();
}

void AheadCompiler::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    wanted_.wait(lock, [&] { return ending_ || !queue_.empty(); });
    if (ending_) return;
    const attention::KernelConfig config = queue_.front();
    queue_.pop_front();
    bool is_new = false;
    try {
      is_new = begun_.insert(to_string(config)).second;
    } catch (const std::exception&) {  // out of memory: the search compiles it
    }
    if (!is_new) continue;
    lock.unlock();
    compile(config);
    lock.lock();
  }
}

// Errors are ignored, because the search meets the same errors when it prepares the candidate.
void AheadCompiler::compile(const attention::KernelConfig& config) const {
  const jit::Compiler& compiler = kernels_.compiler();
  try {
    for (const jit::KernelSpec& spec : kernels_of_(config)) {
      const jit::KernelRequest request = compiler.prepare(spec);
      jit::obtain_kernel(kernels_.disk(), request.key, [&] { return compiler.compile(request); });
    }
  } catch (const std::exception&) {
  }
}

}  // namespace annulus::autotune
