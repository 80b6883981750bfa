#ifndef ANNULUS_BATCH_BATCH_CHOICE_H_
#define ANNULUS_BATCH_BATCH_CHOICE_H_

// Which configuration computes a class of a batch's requests: the caller's, or the first shipped
// one that the device can run and that is not withheld.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "annulus/batch.h"
#include "attention/kernels/device_limits.h"
#include "batch/batch_config.h"

namespace annulus::batch {

// The configurations of BatchOptions::config, legal or not, at most one for each class; none for an
// empty text. Throws Error{kInvalidArgument}. `dims` are those whose shipped configurations the
// error names.
std::vector<KernelConfig> named_configs(std::string_view text, const attention::Dims& dims);

// Why a device cannot run a configuration, or nothing.
std::optional<std::string> why_not(const KernelConfig& config, const attention::Dims& dims,
                                   const attention::DeviceLimits& limits);
// Why its kernel does not compute requests of such a problem on any device, or nothing.
std::optional<std::string> why_not(const KernelConfig& config, const BatchProblem& problem);

struct ClassChoice {
  KernelConfig config;
  std::string withheld;  // why kernels that go before it are withheld; empty: none is
};
// The first of the shipped configurations for a class that the problem allows, the device can run
// and that is not withheld, in the order of batch_kernels(). Throws Error{kUnsupported}.
ClassChoice choose_config(RequestClass requests, const BatchProblem& problem,
                          const attention::DeviceLimits& limits);

// The one of `named` that is for a class, withheld or not, or nothing. Throws Error{kUnsupported}
// if it is not possible here.
std::optional<KernelConfig> named_for(RequestClass requests, std::span<const KernelConfig> named,
                                      const BatchProblem& problem,
                                      const attention::DeviceLimits& limits);

}  // namespace annulus::batch

#endif  // ANNULUS_BATCH_BATCH_CHOICE_H_
