#ifndef ANNULUS_ATTENTION_PLAN_CHOOSE_CONFIG_H_
#define ANNULUS_ATTENTION_PLAN_CHOOSE_CONFIG_H_

// The choice of a configuration for a problem without a tuned result, and the test which
// configurations are possible for a problem.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "annulus/problem.h"
#include "attention/kernels/device_limits.h"
#include "attention/kernels/kernel_config.h"
#include "attention/tiles/segments.h"

namespace annulus::attention {

// A configuration that was not chosen.
struct Rejected {
  KernelConfig config;
  std::string reason;
};

// The configuration for a problem, why it was chosen, and why each other shipped configuration was
// not.
struct Choice {
  KernelConfig config;
  std::string reason;
  std::vector<Rejected> rejected;
  // The second choice, used if the problem's tiles do not allow `config` to compute its heads or
  // tile rows together (group.h). It computes one head and one tile row at a time, which every
  // problem allows. Nullopt if `config` does so itself, or if the caller named `config`.
  std::optional<KernelConfig> second = {};
  // Whether the caller named `config`, which then runs even if it is withheld.
  bool named = false;
};

// A sentence that states why a configuration is not possible on a device, or nullopt if it is.
std::optional<std::string> why_not(const KernelConfig& config, const Dims& dims,
                                   const DeviceLimits& limits);

// Why a configuration does not take operands with these strides, or nullopt. Unknown strides are
// accepted.
std::optional<std::string> why_not(const KernelConfig& config, const Problem& problem,
                                   const std::optional<OperandStrides>& strides);
// Why a configuration never computes forward attention with Q, K and V of a dtype, whatever the
// problem and the device; or nullopt.
std::optional<std::string> why_not(const KernelConfig& config, Dtype dtype);

// The heuristic. `segments` describes all launches of the configuration; `broken` are
// configurations whose kernels were found not to work. Configurations that are withheld
// (why_withheld) are never chosen. Throws Error{kUnsupported} if no other shipped configuration
// fits the device.
Choice choose_config(const Problem& problem, const DeviceLimits& limits,
                     const std::optional<OperandStrides>& strides = std::nullopt,
                     const Segments& segments = {}, std::span<const KernelConfig> broken = {});

// The time that the heuristic predicts for a configuration, in microseconds. It is meant for
// comparison with other configurations. Requires: the configuration is possible here. Throws as
// choose_config.
double predicted_micros(const Problem& problem, const KernelConfig& config,
                        const DeviceLimits& limits, const Segments& segments = {});

// A configuration that the caller named by its text. Throws Error{kInvalidArgument} if the text is
// not a configuration or names a family that this build lacks, Error{kUnsupported} if the device,
// the head dims or the strides do not allow it. A withheld configuration is allowed.
Choice forced_config(const Problem& problem, const DeviceLimits& limits, const std::string& text,
                     const std::optional<OperandStrides>& strides = std::nullopt);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_PLAN_CHOOSE_CONFIG_H_
