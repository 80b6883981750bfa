#include "tuned/space.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "attention/kernels/family.h"
#include "attention/kernels/withheld.h"
#include "batch/batch_choice.h"

namespace annulus::tuned {

using attention::KernelConfig;

std::optional<std::string> why_outside(const KernelConfig& config, const attention::Dims& dims,
                                       Dtype dtype, const attention::DeviceLimits& limits) {
  if (auto reason = attention::why_not(config, dtype)) return reason;
  if (auto reason = attention::why_not(config, dims, limits)) return reason;
  const attention::Footprint taken = attention::footprint(config, dims);
  if (taken.least_registers <= taken.max_registers) return std::nullopt;
  const attention::CtaShape cta = attention::cta_shape(config);
  return fmt::format(
      "{} resident CTAs of {} threads leave each thread {} registers, and it needs about {}",
      cta.resident, cta.threads, taken.max_registers, taken.least_registers);
}

std::optional<std::string> why_outside(const KernelConfig& config, const ShapeKey& shape,
                                       const attention::DeviceLimits& limits) {
  const attention::Dims dims = {shape.dim_qk, shape.dim_v};
  const auto& kernels = batch::batch_kernels();
  const bool of_requests = std::ranges::any_of(
      kernels, [&](const batch::BatchKernel* kernel) { return kernel == config.family; });
  if (of_requests != (shape.requests != Requests::kNone)) {
    return fmt::format("the {} kernel {}", config.family->name,
                       of_requests ? "computes requests of batches" : "computes no requests");
  }
  if (!of_requests) return why_outside(config, dims, shape.dtype, limits);
  const bool few = batch::kernel_of(config).requests == batch::RequestClass::kFewQueries;
  if (few != (shape.requests == Requests::kFewQueries)) {
    return fmt::format("the {} kernel is not for requests of {}", config.family->name,
                       to_string(shape.requests));
  }
  if (shape.dtype == Dtype::kFloat8E4M3) return "no kernel of batches has e4m3 operands";
  return batch::why_not(config, dims, limits);
}

namespace {

// Collects candidates. Of configurations that differ only in the number of resident CTAs, it keeps
// one for each number of registers.
class Gatherer {
 public:
  Gatherer(const attention::Dims& dims, const attention::DeviceLimits& limits,
           const attention::PipeDevice& pipes, bool simulated)
      : dims_(dims), limits_(limits), pipes_(pipes), simulated_(simulated) {}

  // The alternatives have decreasing numbers of resident CTAs, so the first one with each number of
  // registers has the most CTAs that fit.
  template <typename WhyNot>
  void add(std::span<const KernelConfig> alternatives, const WhyNot& why_not) {
    int registers = 0;
    for (const KernelConfig& config : alternatives) {
      if (why_not(config) || attention::why_withheld(config, dims_, limits_)) continue;
      if (simulated_ && attention::why_spills(config, dims_, limits_.arch)) continue;
      if (attention::cta_shape(config).resident > attention::resident_ctas(pipes_, config, dims_)) {
        continue;
      }
      const int allowed = attention::footprint(config, dims_).max_registers;
      if (allowed == registers || (simulated_ && registers != 0)) {
        ++space_.equal;
        continue;
      }
      registers = allowed;
      space_.candidates.push_back(config);
    }
  }

  Space take() { return std::move(space_); }

 private:
  attention::Dims dims_;
  const attention::DeviceLimits& limits_;
  const attention::PipeDevice& pipes_;
  bool simulated_;
  Space space_;
};

}  // namespace

Space enumerate(const attention::Dims& dims, Dtype dtype, const attention::DeviceLimits& limits,
                const attention::PipeDevice& pipes, bool simulated) {
  Gatherer gatherer(dims, limits, pipes, simulated);
  // The order decides ties of a search, so families that run on more devices come first.
  const auto families = attention::families();
  for (auto family = families.rbegin(); family != families.rend(); ++family) {
    (*family)->enumerate([&](std::span<const KernelConfig> alternatives) {
      gatherer.add(alternatives, [&](const KernelConfig& config) {
        return why_outside(config, dims, dtype, limits);
      });
    });
  }
  return gatherer.take();
}

Space enumerate(const BatchProblem& problem, batch::RequestClass requests,
                const attention::DeviceLimits& limits, const attention::PipeDevice& pipes,
                bool simulated) {
  const attention::Dims dims = {problem.dim_qk, problem.dim_v};
  Gatherer gatherer(dims, limits, pipes, simulated);
  const auto kernels = batch::batch_kernels();
  for (auto kernel = kernels.rbegin(); kernel != kernels.rend(); ++kernel) {
    if ((*kernel)->requests != requests) continue;
    (*kernel)->enumerate([&](std::span<const KernelConfig> alternatives) {
      gatherer.add(alternatives, [&](const KernelConfig& config) {
        auto reason = batch::why_not(config, problem);
        return reason ? reason : batch::why_not(config, dims, limits);
      });
    });
  }
  return gatherer.take();
}

}  // namespace annulus::tuned
