#ifndef ANNULUS_ATTENTION_PLAN_CHOOSE_CONFIG_H_
#define ANNULUS_ATTENTION_PLAN_CHOOSE_CONFIG_H_

// The choice of a configuration for a problem without a tuned result, and which configurations a
// problem may have at all.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "annulus/problem.h"
#include "attention/kernels/device_limits.h"
#include "attention/kernels/kernel_config.h"
#include "attention/tiles/segments.h"

namespace annulus::attention {

// A configuration that was not taken.
struct Rejected {
  KernelConfig config;
  std::string reason;
};

// A configuration for the problem, why it was taken, and why each other shipped one was not.
struct Choice {
  KernelConfig config;
  std::string reason;
  std::vector<Rejected> rejected;
  // The second choice, taken if the problem's tiles forbid the heads or tile rows that `config`
  // computes together (group.h). It computes one head and one tile row at a time, which every
  // problem allows. Nothing if `config` does so itself, or if the caller asked for `config`.
  std::optional<KernelConfig> second = {};
  // Whether the caller asked for `config`, which then runs even if it is withheld.
  bool named = false;
};

// A sentence that says why a configuration is not possible on a device, or nothing if it is.
std::optional<std::string> why_not(const KernelConfig& config, const Dims& dims,
                                   const DeviceLimits& limits);

// Why a configuration does not take operands with these strides, or nothing. Unknown strides are
// accepted.
std::optional<std::string> why_not(const KernelConfig& config, const Problem& problem,
                                   const std::optional<OperandStrides>& strides);
// Why a configuration does not compute attention forward with Q, K and V of a dtype, or nothing,
// whatever the problem and the device.
std::optional<std::string> why_not(const KernelConfig& config, Dtype dtype);

// The heuristic. `segments` are those of all launches of the configuration; `broken` are
// configurations whose kernels were found not to work. Those that are withheld (why_withheld) are
// never chosen. Throws Error{kUnsupported} if no other shipped configuration fits the device.
Choice choose_config(const Problem& problem, const DeviceLimits& limits,
                     const std::optional<OperandStrides>& strides = std::nullopt,
                     const Segments& segments = {}, std::span<const KernelConfig> broken = {});

// The time that the heuristic's model predicts for a configuration, in microseconds, by which it
// chooses: of use beside that of another one. Requires: the configuration is possible here. Throws
// as choose_config.
double predicted_micros(const Problem& problem, const KernelConfig& config,
                        const DeviceLimits& limits, const Segments& segments = {});

// A configuration that the caller asked for by its text. Throws Error{kInvalidArgument} if the text
// is no configuration or names a family that this build lacks, Error{kUnsupported} if the device,
// the head dims or the strides do not allow it. One that is withheld is allowed.
Choice forced_config(const Problem& problem, const DeviceLimits& limits, const std::string& text,
                     const std::optional<OperandStrides>& strides = std::nullopt);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_PLAN_CHOOSE_CONFIG_H_
