#include "autotune/space.h"

#include <fmt/core.h>

#include "attention/kernels/family.h"

namespace annulus::autotune {
namespace {

using attention::KernelConfig;

}  // namespace

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

Space enumerate(const attention::Dims& dims, Dtype dtype, const attention::DeviceLimits& limits,
                const attention::PipeDevice& pipes, bool simulated) {
  Space space;
  // Alternatives come with falling numbers of resident CTAs, so the first one with each number of
  // registers has the most CTAs that fit.
  const auto add = [&](std::span<const KernelConfig> alternatives) {
    int registers = 0;
    for (const KernelConfig& config : alternatives) {
      if (why_outside(config, dims, dtype, limits)) continue;
      if (simulated && attention::why_spills(config, dims, limits.arch)) continue;
      if (attention::cta_shape(config).resident > attention::resident_ctas(pipes, config, dims)) {
        continue;
      }
      const int allowed = attention::footprint(config, dims).max_registers;
      if (allowed == registers || (simulated && registers != 0)) {
        ++space.equal;
        continue;
      }
      registers = allowed;
      space.candidates.push_back(config);
    }
  };
  // The order decides ties of a search, so families that run on more devices come first.
  const auto families = attention::families();
  for (auto family = families.rbegin(); family != families.rend(); ++family) {
    (*family)->enumerate(add);
  }
  return space;
}

}  // namespace annulus::autotune
