#include "batch/batch_choice.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "annulus/types.h"
#include "attention/kernels/withheld.h"
#include "base/fail.h"
#include "base/shortened.h"
#include "batch/batch_space.h"

namespace annulus::batch {
namespace {

constexpr std::string_view kBetween = ", ";

attention::Dims dims_of(const BatchProblem& problem) { return {problem.dim_qk, problem.dim_v}; }

// The configurations that are shipped for these head dims: "'decode m16 n64 w4 s3 q x2', 'chunk
// m128 n64 w8 s2'".
std::string shipped_texts(const attention::Dims& dims) {
  std::string texts;
  for (const ShippedBatchConfig& shipped : shipped_batch_configs()) {
    if (shipped.dims.qk != dims.qk || shipped.dims.v != dims.v) continue;
    texts += fmt::format("{}'{}'", texts.empty() ? "" : kBetween, to_string(shipped.config));
  }
  return texts;
}

KernelConfig read(std::string_view text, const attention::Dims& dims) {
  const std::string_view name = attention::family_name(text);
  const BatchKernel* kernel = attention::find_by_name(batch_kernels(), name);
  const auto config = kernel == nullptr ? std::nullopt : attention::parse_config(text, *kernel);
  if (config) return *config;
  const std::string lacking =
      kernel != nullptr || name.empty()
          ? ""
          : fmt::format(": this build has no kernel '{}' for batches, but {}",
                        base::shortened(name), attention::names_of(batch_kernels()));
  base::fail(
      ErrorCode::kInvalidArgument,
      "'{}' is not a configuration of a kernel for batches{}; shipped for head dims {}/{} are "
      "{}",
      base::shortened(text), lacking, dims.qk, dims.v, shipped_texts(dims));
}

}  // namespace

std::vector<KernelConfig> named_configs(std::string_view text, const attention::Dims& dims) {
  std::vector<KernelConfig> named;
  while (!text.empty()) {
    const std::size_t end = text.find(kBetween);
    const KernelConfig config = read(text.substr(0, end), dims);
    for (const KernelConfig& other : named) {
      if (kernel_of(other).requests != kernel_of(config).requests) continue;
      base::fail(ErrorCode::kInvalidArgument,
                 "'{}' and '{}' are configurations for the same requests; name one of them",
                 to_string(other), to_string(config));
    }
    named.push_back(config);
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + kBetween.size());
    if (text.empty()) read(text, dims);  // an empty name, which read() rejects
  }
  return named;
}

std::optional<std::string> why_not(const KernelConfig& config, const attention::Dims& dims,
                                   const attention::DeviceLimits& limits) {
  if (auto reason = attention::why_illegal(config, dims, limits.arch)) return reason;
  return why_no_room(config, dims, limits.shared_bytes_per_block);
}

std::optional<std::string> why_not(const KernelConfig& config, const BatchProblem& problem) {
  const BatchKernel& kernel = kernel_of(config);
  if (problem.block_keys == 0 || kernel.takes_lists) return std::nullopt;
  return fmt::format("the {} kernel takes no lists of blocks, and block_keys is {}", kernel.name,
                     problem.block_keys);
}

ClassChoice choose_config(RequestClass requests, const BatchProblem& problem,
                          const attention::DeviceLimits& limits) {
  const attention::Dims dims = dims_of(problem);
  std::string reason = "there is none for these head dims";
  std::string withheld;
  const char* name = "";
  for (const BatchKernel* kernel : batch_kernels()) {
    if (kernel->requests != requests) continue;
    name = kernel->name;
    for (const ShippedBatchConfig& shipped : kernel->shipped) {
      if (shipped.dims.qk != dims.qk || shipped.dims.v != dims.v) continue;
      auto why = why_not(shipped.config, problem);
      if (!why) why = why_not(shipped.config, dims, limits);
      if (why) {
        reason = std::move(*why);
        continue;
      }
      why = attention::why_withheld(shipped.config, dims, limits);
      if (!why) return {shipped.config, std::move(withheld)};
      attention::add_reason(*why, &withheld);
    }
  }
  if (!withheld.empty()) {
    base::fail(ErrorCode::kUnsupported,
               "no kernel is left for batches of head dims {}/{} on {}: {}; a configuration that "
               "BatchOptions::config names runs all the same",
               dims.qk, dims.v, jit::to_string(limits.arch), withheld);
  }
  base::fail(ErrorCode::kUnsupported, "no {} kernel for batches of head dims {}/{} on {}: {}", name,
             dims.qk, dims.v, jit::to_string(limits.arch), reason);
}

std::optional<KernelConfig> named_for(RequestClass requests, std::span<const KernelConfig> named,
                                      const BatchProblem& problem,
                                      const attention::DeviceLimits& limits) {
  for (const KernelConfig& config : named) {
    if (kernel_of(config).requests != requests) continue;
    auto reason = why_not(config, problem);
    if (!reason) reason = why_not(config, dims_of(problem), limits);
    if (!reason) return config;
    base::fail(ErrorCode::kUnsupported, "configuration '{}' is not possible here: {}",
               to_string(config), *reason);
  }
  return std::nullopt;
}

}  // namespace annulus::batch
