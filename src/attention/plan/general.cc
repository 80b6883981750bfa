#include "attention/plan/general.h"

#include <fmt/core.h>

#include <set>
#include <utility>

#include "attention/kernels/family.h"
#include "attention/kernels/withheld.h"
#include "base/fail.h"

namespace annulus::attention {

namespace {

// The general configuration for these head dims, of the first family that has one for the
// architecture and is not withheld; null if there is none. *withheld gets the reasons why others
// are withheld.
const KernelConfig* config_of(const Dims& dims, const DeviceLimits& limits, std::string* withheld) {
  for (const Family* family : families()) {
    for (const ShippedConfig& shipped : family->general) {
      if (shipped.dims.qk != dims.qk || shipped.dims.v != dims.v) continue;
      if (why_illegal(shipped.config, dims, limits.arch)) continue;
      const auto reason = why_withheld(shipped.config, dims, limits);
      if (!reason) return &shipped.config;
      add_reason(*reason, withheld);
    }
  }
  return nullptr;
}

}  // namespace

Choice general_config(const Problem& problem, const DeviceLimits& limits,
                      const std::optional<OperandStrides>& strides) {
  if (problem.score.score_mod) {
    base::fail(ErrorCode::kUnsupported,
               "there is no general kernel for a score expression, which is compiled");
  }
  const Dims dims = {problem.dim_qk, problem.dim_v};
  std::string withheld;
  const KernelConfig* config = config_of(dims, limits, &withheld);
  std::optional<std::string> reason;
  if (config == nullptr) {
    reason = withheld.empty() ? "none of a family that runs there has these head dims" : withheld;
  } else {
    reason = why_not(*config, problem.dtype);
    if (!reason) reason = why_not(*config, dims, limits);
    if (!reason) reason = why_not(*config, problem, strides);
  }
  if (reason) {
    base::fail(ErrorCode::kUnsupported,
               "there is no general kernel for {} with head dims {}/{} on {}: {}",
               to_string(problem.dtype), dims.qk, dims.v, jit::to_string(limits.arch), *reason);
  }
  Choice choice;
  choice.config = *config;
  choice.reason = "the general kernel of these head dims";
  if (!withheld.empty()) choice.reason += "; " + withheld;
  return choice;
}

std::vector<GeneralKernel> general_kernels(jit::Arch arch) {
  std::vector<GeneralKernel> kernels;
  const DeviceLimits limits = {.arch = arch};
  std::string withheld;
  for (const Dims& dims : supported_dims()) {
    const KernelConfig* config = config_of(dims, limits, &withheld);
    if (config == nullptr) continue;
    for (const Dtype dtype : {Dtype::kFloat16, Dtype::kBfloat16}) {
      KernelFeatures features;
      features.dims = dims;
      features.dtype = features.dtype_o = dtype;
      features.general = true;
      kernels.push_back({*config, dims, dtype, kernel_spec(*config, features, arch),
                         combine_spec(*config, features, arch)});
    }
  }
  return kernels;
}

std::vector<jit::KernelSpec> general_specs(jit::Arch arch) {
  std::vector<jit::KernelSpec> specs;
  std::set<std::string> seen;
  for (GeneralKernel& kernel : general_kernels(arch)) {
    for (jit::KernelSpec* spec : {&kernel.forward, &kernel.combine}) {
      if (seen.insert(jit::source_text(*spec)).second) specs.push_back(std::move(*spec));
    }
  }
  return specs;
}

}  // namespace annulus::attention
