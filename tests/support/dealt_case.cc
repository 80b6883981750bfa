#include "support/dealt_case.h"

#include <cstddef>

#include "api/impl.h"

namespace annulus::test {
namespace {

attention::LaunchPlan plan_of(const Device& device, const Problem& problem,
                              const std::string& config, int multiprocessors,
                              attention::Dealt dealt,
                              const std::optional<attention::HeadStart>& head_start) {
  attention::DeviceLimits limits = api::limits_of(api::inside(device));
  limits.multiprocessors = multiprocessors;
  attention::LaunchPlan plan = attention::make_plan(
      problem, attention::forced_config(problem, limits, config), limits, {.dealt = dealt});
  if (head_start) plan.head_start = *head_start;
  return plan;
}

}  // namespace

DealtCase::DealtCase(const Device& device, const Case& host, const std::string& config,
                     int multiprocessors, attention::Dealt dealt,
                     const std::optional<attention::HeadStart>& head_start)
    : device_(device),
      on_device_(device, host),
      forward_(api::inside(device).context, *api::inside(device).kernels,
               plan_of(device, host.problem, config, multiprocessors, dealt, head_start)),
      workspace_(api::inside(device).context,
                 static_cast<std::size_t>(forward_.plan().workspace_bytes)) {
  device::fill_bytes_async(*api::inside(device).context, workspace_.address(), 0xab,
                           workspace_.bytes(), nullptr);
}

void DealtCase::queue(void* stream, void* workspace) const {
  forward_.run(static_cast<abi::CUstream>(stream), on_device_.operands(), workspace);
}

void DealtCase::put(device::LaunchSink& to) const {
  forward_.put(to, on_device_.operands(), forward_.lists(), workspace());
}

DeviceAnswer DealtCase::run() {
  on_device_.reset();
  queue(nullptr);
  api::inside(device_).context->synchronize();
  return on_device_.answer();
}

}  // namespace annulus::test
