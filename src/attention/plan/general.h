#ifndef ANNULUS_ATTENTION_PLAN_GENERAL_H_
#define ANNULUS_ATTENTION_PLAN_GENERAL_H_

// General kernels (KernelFeatures::general): which problems they serve, and all that there are, so
// that they can be compiled before anybody knows a problem.

#include <optional>
#include <vector>

#include "annulus/problem.h"
#include "attention/kernels/device_limits.h"
#include "attention/plan/choose_config.h"
#include "jit/spec.h"

namespace annulus::attention {

// The configuration of the general kernel of a problem. Throws Error{kUnsupported} where there is
// none, with the reason: a score expression, 8-bit elements, or no configuration that fits the
// device and the strides and is not withheld.
Choice general_config(const Problem& problem, const DeviceLimits& limits,
                      const std::optional<OperandStrides>& strides = std::nullopt);

// A kernel into which no problem is compiled, and what it is for.
struct GeneralKernel {
  KernelConfig config;
  Dims dims;
  Dtype dtype;
  jit::KernelSpec forward;
  jit::KernelSpec combine;  // joins the parts of split rows
};

// All general kernels of an architecture that are not withheld, in the order of head dims. Those
// that join may be alike.
std::vector<GeneralKernel> general_kernels(jit::Arch arch);

// All of their specifications, each once.
std::vector<jit::KernelSpec> general_specs(jit::Arch arch);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_PLAN_GENERAL_H_
