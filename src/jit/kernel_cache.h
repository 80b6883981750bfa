#ifndef ANNULUS_JIT_KERNEL_CACHE_H_
#define ANNULUS_JIT_KERNEL_CACHE_H_

// Kernels ready to launch: from memory, else from disk, else from the compiler.
//
// On disk a kernel of this very compiler is taken from the cache, then from the folders of kernels
// that were compiled ahead; then one of any other compiler from these folders, since it was put
// there on purpose; and where there is no compiler, such a one from the cache as well. One that the
// driver refuses leads on to the next, and then to the compiler.
//
//   KernelCache cache(context, compiler, disk);
//   const KernelRequest request = compiler->prepare(spec);     // once
//   const KernelLookup found = cache.get(request);             // under 1 us when in memory
//   device::launch(found.kernel->function, ...);
//
// One cache serves one context, because a loaded module belongs to its context; several share a
// Compiler and a DiskCache.

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
  // Time to look on disk, including the wait for another process that compiles it.
  double disk_ms = 0;
  double compile_ms = 0;  // zero where the kernel came from disk
};

// Gets a kernel from the cache, or else from build(), whose result is then stored. Any trouble with
// the disk only leads to build(). Exceptions of build() pass through.
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
  // The times are all zero for kMemory, and where another thread made the kernel while this one
  // waited.
  bool compiled_ahead = false;  // from one of the folders of such kernels
  double disk_ms = 0;
  double compile_ms = 0;
  double load_ms = 0;  // the driver's part: cuModuleLoadData and cuModuleGetFunction
};

class KernelCache {
 public:
  // `folders` null: none.
  KernelCache(device::ContextPointer context, std::shared_ptr<const Compiler> compiler,
              std::shared_ptr<DiskCache> disk, std::shared_ptr<KernelFolders> folders = nullptr);

  // May be called from any thread. Threads that ask for one kernel at the same time wait for the
  // first of them. Throws Error{kCompile} where NVRTC rejects it, Error{kDevice} where the driver
  // does, and Error{kLibrary} where it is nowhere and cannot be compiled (jit/missing_kernel.h).
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
  // What the driver says of the last kernel on disk that it refuses, and whether the file of this
  // very compiler in the cache is among them.
  struct Refused {
    std::string why;
    bool own = false;
  };
  std::shared_ptr<const LoadedKernel> load_from_disk(const KernelRequest& request,
                                                     KernelLookup* lookup, Refused* refused);
  // Adds what a request took to the counts of the device.
  void count(const KernelLookup& lookup) const;

  device::ContextPointer context_;
  std::shared_ptr<const Compiler> compiler_;
  std::shared_ptr<DiskCache> disk_;
  std::shared_ptr<KernelFolders> folders_;
  // Without limits, so kernels stay for the life of the cache.
  base::SharedCache<KernelKey, LoadedKernel, DigestHash> loaded_;
};

}  // namespace annulus::jit

#endif  // ANNULUS_JIT_KERNEL_CACHE_H_
