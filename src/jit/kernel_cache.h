#ifndef ANNULUS_JIT_KERNEL_CACHE_H_
#define ANNULUS_JIT_KERNEL_CACHE_H_

// Kernels that are ready to launch: from memory, else from disk, else from the compiler.
//
// On disk, the sources are tried in this order: a kernel from the same compiler in the cache, such
// a kernel in the folders of kernels compiled ahead, and a kernel from any other compiler in these
// folders, because it was put there on purpose. If there is no compiler, a kernel from another
// compiler in the cache is tried too. If the driver refuses a kernel, the next one is tried, and
// finally the compiler is used.
//
//   KernelCache cache(context, compiler, disk);
//   const KernelRequest request = compiler->prepare(spec);     // once
//   const KernelLookup found = cache.get(request);             // under 1 us when in memory
//   device::launch(found.kernel->function, ...);
//
// A cache serves one context, because a loaded module belongs to its context. Several caches may
// share a Compiler and a DiskCache.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "base/shared_cache.h"
#include "device/module.h"
#include "jit/compiler.h"
#include "jit/disk_cache.h"

namespace annulus::jit {

enum class Origin { kMemory, kDisk, kCompiled };
const char* to_string(Origin origin);  // "memory", "disk", "compiled"

// A compiled kernel, and whether it came from disk or from the compiler.
struct ObtainedKernel {
  CompiledKernel kernel;
  Origin origin = Origin::kCompiled;
  // The time of the disk lookup, including the wait for another process that compiles the kernel.
  double disk_ms = 0;
  double compile_ms = 0;  // zero if the kernel came from disk
};

// Gets a kernel from the disk cache. If it is not there, calls build() and stores the result. If
// the disk fails in any way, build() is called. Exceptions of build() pass through.
ObtainedKernel obtain_kernel(DiskCache& disk, const KernelKey& key,
                             const std::function<CompiledKernel()>& build);

struct LoadedKernel {
  device::Function function;
  KernelRequest request;
  ResourceUsage usage;
  std::string symbol;
  std::size_t image_bytes = 0;
};

struct KernelLookup {
  std::shared_ptr<const LoadedKernel> kernel;  // never null
  Origin origin = Origin::kMemory;
  // All times are zero for kMemory, and if another thread made the kernel while this thread waited.
  bool compiled_ahead = false;  // from a folder of kernels that were compiled ahead
  double disk_ms = 0;
  double compile_ms = 0;
  double load_ms = 0;  // the driver's part: cuModuleLoadData and cuModuleGetFunction
};

class KernelCache {
 public:
  // If `folders` is null, there are no such folders.
  KernelCache(device::ContextPointer context, std::shared_ptr<const Compiler> compiler,
              std::shared_ptr<DiskCache> disk, std::shared_ptr<KernelFolders> folders = nullptr);

  // May be called from any thread. Threads that request the same kernel at the same time wait for
  // the first of them. Throws Error{kCompile} if NVRTC rejects the kernel, Error{kDevice} if the
  // driver rejects it, and Error{kLibrary} if the kernel is found nowhere and cannot be compiled
  // (jit/missing_kernel.h).
  KernelLookup get(const KernelRequest& request);
  KernelLookup get(const KernelSpec& spec) { return get(compiler_->prepare(spec)); }

  // Whether the kernel is in memory. Never waits.
  bool has(const KernelSpec& spec) const { return loaded_.has(compiler_->prepare(spec).key); }

  const Compiler& compiler() const { return *compiler_; }
  DiskCache& disk() const { return *disk_; }
  base::CacheCounters counters() const { return loaded_.counters(); }
  std::int64_t size() const { return counters().entries; }

 private:
  struct DigestHash {
    std::size_t operator()(const KernelKey& key) const;
  };

  std::shared_ptr<const LoadedKernel> make(const KernelRequest& request, KernelLookup* lookup);
  // The driver's error for the last kernel on disk that it refused, and whether one of the refused
  // files was from the same compiler and in the cache.
  struct Refused {
    std::string why;
    bool own = false;
  };
  std::shared_ptr<const LoadedKernel> load_from_disk(const KernelRequest& request,
                                                     KernelLookup* lookup, Refused* refused);
  // Adds the lookup to the counts of the device.
  void count(const KernelLookup& lookup) const;

  device::ContextPointer context_;
  std::shared_ptr<const Compiler> compiler_;
  std::shared_ptr<DiskCache> disk_;
  std::shared_ptr<KernelFolders> folders_;
  // There are no limits, so kernels stay for the lifetime of the cache.
  base::SharedCache<KernelKey, LoadedKernel, DigestHash> loaded_;
};

}  // namespace annulus::jit

#endif  // ANNULUS_JIT_KERNEL_CACHE_H_
