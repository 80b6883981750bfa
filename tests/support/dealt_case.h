#ifndef ANNULUS_TESTS_SUPPORT_DEALT_CASE_H_
#define ANNULUS_TESTS_SUPPORT_DEALT_CASE_H_

// A case whose works are dealt as a test requests, instead of in the way that the model prefers.

#include <optional>
#include <string>

#include "attention/plan/plan.h"
#include "attention/run/forward.h"
#include "device/buffer.h"
#include "support/device_case.h"

namespace annulus::test {

// A case whose plan deals its works in the way `dealt`, on `multiprocessors` multiprocessors. If no
// head start is given, it has the model's. Its workspace contains garbage at first.
class DealtCase {
 public:
  DealtCase(const Device& device, const Case& host, const std::string& config, int multiprocessors,
            attention::Dealt dealt,
            const std::optional<attention::HeadStart>& head_start = std::nullopt);

  const attention::LaunchPlan& plan() const { return forward_.plan(); }
  const attention::Forward& forward() const { return forward_; }
  DeviceCase& on_device() { return on_device_; }
  void* workspace() const { return reinterpret_cast<void*>(workspace_.address()); }

  void queue(void* stream) const { queue(stream, workspace()); }
  void queue(void* stream, void* workspace) const;
  void put(device::LaunchSink& to) const;
  // Runs the case with an output filled with NaN, and waits.
  DeviceAnswer run();

 private:
  Device device_;
  DeviceCase on_device_;
  attention::Forward forward_;
  device::Buffer workspace_;
};

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_SUPPORT_DEALT_CASE_H_
