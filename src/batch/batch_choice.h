#ifndef ANNULUS_BATCH_BATCH_CHOICE_H_
#define ANNULUS_BATCH_BATCH_CHOICE_H_

// Chooses the configuration that computes a class of a batch's requests: the caller's, or the first
// shipped one that the device can run and that is not withheld.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "annulus/batch.h"
#include "attention/kernels/device_limits.h"
#include "batch/batch_config.h"

namespace annulus::batch {

// The configurations that the text of BatchOptions::config names, legal or not: at most one for
// each class, and none for an empty text. Throws Error{kInvalidArgument}. The error lists the
// shipped configurations for `dims`.
std::vector<KernelConfig> named_configs(std::string_view text, const attention::Dims& dims);

// Why a device cannot run a configuration, or nullopt if it can.
std::optional<std::string> why_not(const KernelConfig& config, const attention::Dims& dims,
                                   const attention::DeviceLimits& limits);
// Why the kernel of a configuration does not compute requests of such a problem on any device, or
// nullopt if it does.
std::optional<std::string> why_not(const KernelConfig& config, const BatchProblem& problem);

struct ClassChoice {
  KernelConfig config;
  std::string withheld;  // why kernels that come before it are withheld; empty if none is
};
// The first shipped configuration for a class, in the order of batch_kernels(), that the problem
// allows, that the device can run and that is not withheld. Throws Error{kUnsupported}.
ClassChoice choose_config(RequestClass requests, const BatchProblem& problem,
                          const attention::DeviceLimits& limits);

// The configuration in `named` for a class, withheld or not, or nullopt. Throws Error{kUnsupported}
// if it is not possible here.
std::optional<KernelConfig> named_for(RequestClass requests, std::span<const KernelConfig> named,
                                      const BatchProblem& problem,
                                      const attention::DeviceLimits& limits);

}  // namespace annulus::batch

#endif  // ANNULUS_BATCH_BATCH_CHOICE_H_
