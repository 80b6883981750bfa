#ifndef ANNULUS_ATTENTION_PLAN_CHOOSE_CONFIG_H_
#define ANNULUS_ATTENTION_PLAN_CHOOSE_CONFIG_H_

// Which configuration a problem gets where nothing was tuned, and which ones it may get at all.

#include <optional>
#include <string>
#include <vector>

#include "annulus/attention.h"
#include "attention/kernels/device_limits.h"
#include "attention/kernels/kernel_config.h"

namespace annulus::attention {

// A configuration that was not taken.
struct Rejected {
  KernelConfig config;
  std::string reason;
};

// A configuration for the problem, why it was taken, and why each other one of the table was not.
struct Choice {
  KernelConfig config;
  std::string reason;
  std::vector<Rejected> rejected;
  // Taken instead where the tiles of the problem forbid what `config` does together (group.h). One
  // that computes a head and a tile row at a time, which every problem allows. Nothing where
  // `config` is such a one, and where somebody asked for `config` and no other.
  std::optional<KernelConfig> second = {};
};

// A sentence that says why a configuration is not possible on a device, or nothing where it is.
std::optional<std::string> why_not(const KernelConfig& config, const Dims& dims,
                                   const DeviceLimits& limits);

// The same for operands that lie so; nothing where it is not known how they will.
std::optional<std::string> why_not(const KernelConfig& config, const Problem& problem,
                                   const std::optional<OperandStrides>& strides);
// The same for attention forward with Q, K and V of a dtype, whatever the problem and the device.
std::optional<std::string> why_not(const KernelConfig& config, Dtype dtype);

// The heuristic. placed: positions will be read row by row, as where tensors are shards of several
// segments. Throws Error{kUnsupported} where nothing in the table fits the device.
Choice choose_config(const Problem& problem, const DeviceLimits& limits,
                     const std::optional<OperandStrides>& strides = std::nullopt,
                     bool placed = false);

// A configuration that the caller asked for by its text. Throws Error{kInvalidArgument} where the
// text is none or names a family that this build lacks, Error{kUnsupported} where the device, the
// head dims or the strides do not allow it.
Choice forced_config(const Problem& problem, const DeviceLimits& limits, const std::string& text,
                     const std::optional<OperandStrides>& strides = std::nullopt);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_PLAN_CHOOSE_CONFIG_H_
