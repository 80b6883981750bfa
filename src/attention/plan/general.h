#ifndef ANNULUS_ATTENTION_PLAN_GENERAL_H_
#define ANNULUS_ATTENTION_PLAN_GENERAL_H_

// General kernels (KernelFeatures::general): which problems they serve, and the list of all of
// them, so that they can be compiled before a problem is known.

#include <optional>
#include <vector>

#include "annulus/problem.h"
#include "attention/kernels/device_limits.h"
#include "attention/plan/choose_config.h"
#include "jit/spec.h"

namespace annulus::attention {

// The configuration of the general kernel of a problem. Throws Error{kUnsupported} if there is
// none, with the reason: a score expression, 8-bit elements, or no configuration that fits the
// device and the strides and is not withheld.
Choice general_config(const Problem& problem, const DeviceLimits& limits,
                      const std::optional<OperandStrides>& strides = std::nullopt);

// A kernel without a compiled-in problem, and its purpose.
struct GeneralKernel {
  KernelConfig config;
  Dims dims;
  Dtype dtype;
  jit::KernelSpec forward;
  jit::KernelSpec combine;  // the kernel that joins the parts of split rows
};

// All general kernels of an architecture that are not withheld, in the order of head dims. Several
// of them may have equal combine kernels.
std::vector<GeneralKernel> general_kernels(jit::Arch arch);

// The specifications of all general kernels, each once.
std::vector<jit::KernelSpec> general_specs(jit::Arch arch);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_PLAN_GENERAL_H_
