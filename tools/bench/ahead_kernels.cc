#include "ahead_kernels.h"

#include <cstdio>
#include <filesystem>
#include <utility>

#include "abi/libraries.h"
#include "api/impl.h"
#include "api/known_gpus.h"
#include "base/env.h"
#include "base/fail.h"

namespace annulus::bench {

AheadKernels::AheadKernels(const std::string& target) {
  const bool simulated = target.starts_with("sim:");
  if (simulated) {
    limits_.push_back(api::limits_of(api::inside(Device::open(target))));
  }
  for (const api::GpuModel& model : api::gpu_models()) {
    const jit::Arch arch = api::architecture_of(model);
    if (target != jit::to_string(arch)) continue;
    limits_.push_back(api::limits_of(api::info_of(model), arch));
  }
  if (limits_.empty()) {
    base::fail(ErrorCode::kInvalidArgument,
               "'{}' is not a target to compile for; give the architecture of a known GPU, as "
               "sm_90a, or a simulated device, as sim:sm_90a",
               target);
  }
  compiler_ = std::make_shared<const jit::Compiler>(
      std::make_shared<const abi::NvrtcLibrary>(
          abi::open_nvrtc(abi::default_search(base::read_environment()))),
      jit::TemplateSet::embedded(), simulated ? jit::ImageKind::kPtx : jit::ImageKind::kCubin);
}

void AheadKernels::add(const std::shared_ptr<const jit::Compiler>& compiler, jit::KernelSpec spec) {
  jit::AheadJob job{compiler, compiler->prepare(std::move(spec))};
  if (known_.insert(job.request.key.digest).second) jobs_.push_back(std::move(job));
}

bool AheadKernels::compile_into(const std::string& folder) const {
  jit::AheadOptions options;
  options.folder = std::filesystem::absolute(folder).lexically_normal().string();
  const jit::AheadResult made = jit::compile_ahead(jobs_, options);
  for (const jit::AheadFailure& failure : made.failures) {
    std::fprintf(stderr, "%s: %s\n", jit::describe(jobs_[failure.job]).c_str(),
                 failure.error.c_str());
  }
  std::printf("%zu kernels in %s: %lld compiled, %lld there before, %zu failed, %.1f MB\n",
              jobs_.size(), options.folder.c_str(), static_cast<long long>(made.compiled),
              static_cast<long long>(made.there), made.failures.size(),
              static_cast<double>(made.bytes) / 1e6);
  return made.failures.empty();
}

}  // namespace annulus::bench
