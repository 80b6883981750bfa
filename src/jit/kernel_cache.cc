#include "jit/kernel_cache.h"

#include <chrono>
#include <cmath>
#include <cstring>
#include <utility>

#include "abi/libraries.h"
#include "annulus/error.h"
#include "base/fail.h"
#include "base/span.h"

namespace annulus::jit {
namespace {

// Milliseconds since the last call of lap().
class Stopwatch {
 public:
  double lap() {
    const Clock::time_point now = Clock::now();
    const double passed = std::chrono::duration<double, std::milli>(now - last_).count();
    last_ = now;
    return passed;
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point last_ = Clock::now();
};

// Loads a kernel. A driver need not take cubins of a toolkit whose major version is newer than its
// own (CUDA documentation, minor version compatibility), in which case the error says so.
device::Function load(const device::ContextPointer& context, const CompiledKernel& kernel,
                      const Compiler& compiler) {
  const base::Span span("load", kernel.symbol);
  const auto* image = reinterpret_cast<const char*>(kernel.image.data());
  try {
    return device::Module::load(context, {image, kernel.image.size()})->function(kernel.symbol);
  } catch (const Error& error) {
    const int driver = context->driver().version();
    const int made = compiler.version();
    if (error.code() != ErrorCode::kDevice || driver / 1000 >= made / 1000) throw;
    base::fail(ErrorCode::kLibrary,
               "{}. The driver is of CUDA {}, the kernel was compiled by NVRTC {}: install a newer "
               "driver, or let ANNULUS_LIBRARY_PATH name an NVRTC of CUDA {}",
               error.what(), abi::cuda_version_text(driver), abi::cuda_version_text(made),
               driver / 1000);
  }
}

}  // namespace

const char* to_string(Origin origin) {
  switch (origin) {
    case Origin::kMemory:
      return "memory";
    case Origin::kDisk:
      return "disk";
    case Origin::kCompiled:
      return "compiled";
  }
  return "unknown origin";
}

ObtainedKernel obtain_kernel(DiskCache& disk, const KernelKey& key,
                             const std::function<CompiledKernel()>& build) {
  Stopwatch watch;
  ObtainedKernel obtained;
  if (std::optional<CompiledKernel> found = disk.find(key)) {
    return {std::move(*found), Origin::kDisk, watch.lap(), 0};
  }
  // The lock is held until the kernel is stored. A process that waited for it finds the kernel in
  // the second look.
  const DiskCache::Lock lock = disk.lock(key);
  if (std::optional<CompiledKernel> found = disk.find(key, /*quiet=*/true)) {
    return {std::move(*found), Origin::kDisk, watch.lap(), 0};
  }
  obtained.disk_ms = watch.lap();
  obtained.kernel = build();
  obtained.compile_ms = watch.lap();
  disk.store(key, obtained.kernel);
  obtained.disk_ms += watch.lap();
  return obtained;
}

std::size_t KernelCache::DigestHash::operator()(const KernelKey& key) const {
  std::size_t hash;
  std::memcpy(&hash, key.digest.bytes.data(), sizeof(hash));
  return hash;
}

KernelCache::KernelCache(device::ContextPointer context, std::shared_ptr<const Compiler> compiler,
                         std::shared_ptr<DiskCache> disk)
    : context_(std::move(context)), compiler_(std::move(compiler)), disk_(std::move(disk)) {}

KernelLookup KernelCache::get(const KernelRequest& request) {
  KernelLookup lookup;
  const auto make_and_count = [&] {
    try {
      std::shared_ptr<const LoadedKernel> made = make(request, &lookup);
      count(lookup);
      return made;
    } catch (...) {
      context_->tally().add(base::Count::kernels_failed);
      throw;
    }
  };
  lookup.kernel = loaded_.get(request.key, make_and_count, [](const LoadedKernel& kernel) {
    return static_cast<std::int64_t>(kernel.image_bytes);
  });
  return lookup;
}

void KernelCache::count(const KernelLookup& lookup) const {
  const auto micros = [](double millis) { return std::llround(millis * 1e3); };
  base::Tally& tally = context_->tally();
  tally.add(lookup.origin == Origin::kCompiled ? base::Count::compiles
                                               : base::Count::kernels_from_disk);
  tally.add(base::Count::compile_micros, micros(lookup.compile_ms));
  tally.raise(base::Count::longest_compile_micros, micros(lookup.compile_ms));
  tally.add(base::Count::disk_micros, micros(lookup.disk_ms));
  tally.add(base::Count::load_micros, micros(lookup.load_ms));
}

std::shared_ptr<const LoadedKernel> KernelCache::make(const KernelRequest& request,
                                                      KernelLookup* lookup) {
  const base::Span span("kernel", request.spec.family);
  const auto build = [&] {
    const base::Span compiling("compile", request.spec.family);
    return compiler_->compile(request);
  };
  ObtainedKernel obtained = obtain_kernel(*disk_, request.key, build);
  Stopwatch watch;
  device::Function function;
  try {
    function = load(context_, obtained.kernel, *compiler_);
  } catch (const Error& error) {
    // A file on disk that the driver rejects is compiled anew, once.
    if (obtained.origin != Origin::kDisk || error.code() != ErrorCode::kDevice) throw;
    context_->tally().add(base::Count::recovered_kernels);
    watch.lap();
    obtained.kernel = build();
    obtained.origin = Origin::kCompiled;
    obtained.compile_ms = watch.lap();
    disk_->store(request.key, obtained.kernel);
    watch.lap();
    function = load(context_, obtained.kernel, *compiler_);
  }
  lookup->load_ms = watch.lap();
  lookup->origin = obtained.origin;
  lookup->disk_ms = obtained.disk_ms;
  lookup->compile_ms = obtained.compile_ms;
  return std::make_shared<const LoadedKernel>(
      LoadedKernel{std::move(function), request, std::move(obtained.kernel.usage),
                   std::move(obtained.kernel.symbol), obtained.kernel.image.size()});
}

}  // namespace annulus::jit
