#include "jit/kernel_cache.h"

#include <chrono>
#include <cmath>
#include <cstring>
#include <utility>

#include "abi/libraries.h"
#include "annulus/types.h"
#include "base/fail.h"
#include "base/span.h"
#include "jit/missing_kernel.h"

namespace annulus::jit {
namespace {

// Returns the milliseconds since the last call of lap().
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

// Loads a kernel that NVRTC of version `made` compiled. A driver may refuse cubins of a toolkit
// whose major version is newer than its own (CUDA documentation, minor version compatibility). Then
// the error states that.
device::Function load(const device::ContextPointer& context, const CompiledKernel& kernel,
                      int made) {
  const base::Span span("load", kernel.symbol);
  const auto* image = reinterpret_cast<const char*>(kernel.image.data());
  try {
    return device::Module::load(context, {image, kernel.image.size()})->function(kernel.symbol);
  } catch (const Error& error) {
    const int driver = context->driver().version();
    if (error.code() != ErrorCode::kDevice || driver / 1000 >= made / 1000) throw;
    base::fail(ErrorCode::kLibrary,
               "{}. The driver is of CUDA {}, the kernel was compiled by NVRTC {}: install a newer "
               "driver, or let ANNULUS_LIBRARY_PATH name an NVRTC of CUDA {}",
               error.what(), abi::cuda_version_text(driver), abi::cuda_version_text(made),
               driver / 1000);
  }
}

// Compiles a kernel and stores it. The lock is held until the kernel is stored. A process that
// waited for the lock finds the kernel in a second lookup. There is no second lookup if that file
// is the one to be replaced.
ObtainedKernel build_kernel(DiskCache& disk, const KernelKey& key, bool replace,
                            const std::function<CompiledKernel()>& build) {
  Stopwatch watch;
  ObtainedKernel obtained;
  const DiskCache::Lock lock = disk.lock(key);
  if (!replace) {
    if (std::optional<CompiledKernel> found = disk.find(key, /*quiet=*/true)) {
      return {std::move(*found), Origin::kDisk, watch.lap(), 0};
    }
  }
  obtained.disk_ms = watch.lap();
  obtained.kernel = build();
  obtained.compile_ms = watch.lap();
  disk.store(key, obtained.kernel);
  obtained.disk_ms += watch.lap();
  return obtained;
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
  if (std::optional<CompiledKernel> found = disk.find(key)) {
    return {std::move(*found), Origin::kDisk, watch.lap(), 0};
  }
  const double looked_ms = watch.lap();
  ObtainedKernel obtained = build_kernel(disk, key, /*replace=*/false, build);
  obtained.disk_ms += looked_ms;
  return obtained;
}

std::size_t KernelCache::DigestHash::operator()(const KernelKey& key) const {
  std::size_t hash;
  std::memcpy(&hash, key.digest.bytes.data(), sizeof(hash));
  return hash;
}

KernelCache::KernelCache(device::ContextPointer context, std::shared_ptr<const Compiler> compiler,
                         std::shared_ptr<DiskCache> disk, std::shared_ptr<KernelFolders> folders)
    : context_(std::move(context)),
      compiler_(std::move(compiler)),
      disk_(std::move(disk)),
      folders_(folders ? std::move(folders)
                       : std::make_shared<KernelFolders>(std::vector<std::string>{})) {}

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
  if (lookup.compiled_ahead) tally.add(base::Count::kernels_compiled_ahead);
  tally.add(base::Count::compile_micros, micros(lookup.compile_ms));
  tally.raise(base::Count::longest_compile_micros, micros(lookup.compile_ms));
  tally.add(base::Count::disk_micros, micros(lookup.disk_ms));
  tally.add(base::Count::load_micros, micros(lookup.load_ms));
}

// The first kernel on disk that the driver accepts. Null if there is none.
std::shared_ptr<const LoadedKernel> KernelCache::load_from_disk(const KernelRequest& request,
                                                                KernelLookup* lookup,
                                                                Refused* refused) {
  const KernelKey& key = request.key;
  // The simulator accepts PTX of any version.
  const int driver = context_->info().simulated ? 0 : context_->driver().version();
  Stopwatch watch;
  const auto try_to_load = [&](CompiledKernel kernel, const KernelKey& of, bool ahead) {
    lookup->disk_ms += watch.lap();
    std::shared_ptr<const LoadedKernel> loaded;
    try {
      device::Function function = load(context_, kernel, compiler_version(of.compiler));
      loaded = std::make_shared<const LoadedKernel>(
          LoadedKernel{std::move(function), request, std::move(kernel.usage),
                       std::move(kernel.symbol), kernel.image.size()});
    } catch (const Error& error) {
      const bool of_this_file =
          error.code() == ErrorCode::kDevice || error.code() == ErrorCode::kLibrary;
      if (!of_this_file) throw;
      context_->tally().add(base::Count::recovered_kernels);
      refused->why = error.what();
    }
    lookup->load_ms += watch.lap();
    lookup->origin = Origin::kDisk;
    lookup->compiled_ahead = ahead;
    return loaded;
  };
  if (std::optional<CompiledKernel> found = disk_->find(key)) {
    if (auto loaded = try_to_load(std::move(*found), key, false)) return loaded;
    refused->own = true;
  }
  if (std::optional<FoundKernel> found = folders_->find(key)) {
    if (auto loaded = try_to_load(std::move(found->kernel), key, true)) return loaded;
  }
  for (FoundKernel& found : folders_->of_others(key, driver)) {
    if (auto loaded = try_to_load(std::move(found.kernel), found.key, true)) return loaded;
  }
  if (!compiler_->compiles()) {
    for (FoundKernel& found : disk_->of_others(key, driver)) {
      if (auto loaded = try_to_load(std::move(found.kernel), found.key, false)) return loaded;
    }
  }
  lookup->disk_ms += watch.lap();
  return nullptr;
}

std::shared_ptr<const LoadedKernel> KernelCache::make(const KernelRequest& request,
                                                      KernelLookup* lookup) {
  const base::Span span("kernel", request.spec.family);
  Refused refused;
  if (auto loaded = load_from_disk(request, lookup, &refused)) return loaded;
  if (!compiler_->compiles())
    fail_missing(request.spec, *compiler_, *disk_, *folders_, refused.why);
  const auto build = [&] {
    const base::Span compiling("compile", request.spec.family);
    return compiler_->compile(request);
  };
  ObtainedKernel obtained = build_kernel(*disk_, request.key, refused.own, build);
  Stopwatch watch;
  device::Function function;
  try {
    function = load(context_, obtained.kernel, compiler_->version());
  } catch (const Error& error) {
    // Another process stored this kernel meanwhile. The driver may refuse it like any other file
    // on disk, so it is compiled here.
    if (obtained.origin != Origin::kDisk || error.code() != ErrorCode::kDevice) throw;
    context_->tally().add(base::Count::recovered_kernels);
    obtained = build_kernel(*disk_, request.key, /*replace=*/true, build);
    watch.lap();
    function = load(context_, obtained.kernel, compiler_->version());
  }
  lookup->load_ms += watch.lap();
  lookup->origin = obtained.origin;
  lookup->compiled_ahead = false;
  lookup->disk_ms += obtained.disk_ms;
  lookup->compile_ms = obtained.compile_ms;
  return std::make_shared<const LoadedKernel>(
      LoadedKernel{std::move(function), request, std::move(obtained.kernel.usage),
                   std::move(obtained.kernel.symbol), obtained.kernel.image.size()});
}

}  // namespace annulus::jit
