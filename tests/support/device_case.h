#ifndef ANNULUS_TESTS_SUPPORT_DEVICE_CASE_H_
#define ANNULUS_TESTS_SUPPORT_DEVICE_CASE_H_

// Runs a random problem on a device and copies the answer to the host.

#include <functional>
#include <optional>
#include <vector>

#include "annulus/device.h"
#include "attention/oracle/reference.h"
#include "support/random_problem.h"

namespace annulus::test {

// The results that the device wrote. Elements that it did not write hold NaN.
struct DeviceAnswer {
  HostTensor o;
  std::vector<float> lse;
  HostState state;
  bool carried = false;

  HostResult result() const;
  // Whether all bits are equal, including the bits of NaN.
  friend bool operator==(const DeviceAnswer& a, const DeviceAnswer& b);
};

// The operands of a case on a device. They can be run several times.
class DeviceCase {
 public:
  DeviceCase(const Device& device, const Case& host);

  const Operands& operands() const { return operands_; }
  // Fills the tensors that the kernel writes with NaN again.
  void reset();
  DeviceAnswer answer() const;

  // Captures the work of run(stream) in a graph, and replays it twice. Nothing may run before the
  // replay, and each replay must write `expected`. Does nothing if the driver has no graphs.
  void check_replay(const std::function<void(void* stream)>& run, const DeviceAnswer& expected);

 private:
  DeviceMemory upload(const void* data, std::size_t bytes) const;

  Device device_;
  const Case& host_;
  DeviceMemory q_, k_, v_, o_, lse_;
  DeviceMemory scale_q_, scale_k_, scale_v_;
  DeviceMemory acc_in_, m_in_, l_in_, acc_out_, m_out_, l_out_;
  Operands operands_;
};

// Plans and runs a case, and waits for its answer.
DeviceAnswer run_case(const Device& device, const Case& host, const PlanOptions& options = {});

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_SUPPORT_DEVICE_CASE_H_
