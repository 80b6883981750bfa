#ifndef ANNULUS_TESTS_OUTSIDE_OUTSIDE_H_
#define ANNULUS_TESTS_OUTSIDE_OUTSIDE_H_

// These tests use the library as a user's program does. They include public headers, link
// libannulus.so, and use nothing else of the tree. Together they call every public function, which
// tests/house/called.cmake checks.

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "annulus/device.h"
#include "annulus/oracle.h"
#include "annulus/types.h"

namespace annulus::test {

// A temporary folder, which the destructor removes.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  std::string path(const std::string& name) const { return folder_ + "/" + name; }

 private:
  std::string folder_;
};

template <typename Call>
void check_fails(ErrorCode code, const std::string& part, Call&& call) {
  try {
    call();
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK_MESSAGE(error.code() == code, error.what());
    CHECK_MESSAGE(std::string(error.what()).find(part) != std::string::npos, error.what());
  }
}

// The simulated device that these tests share.
const Device& device();

// Q, K and V of a bf16 problem, each [B, S, H, D], filled from a seed, on the host and the device,
// with memory for O and LSE.
struct Tensors {
  Tensors(const Device& device, const Problem& problem, std::uint32_t seed);

  std::vector<std::uint16_t> q, k, v, o;
  std::vector<float> lse;
  DeviceMemory on_device[5];  // memory of q, k, v, o and lse
  Operands operands;

  void read_back(const Device& device);
};

// Q, K and V for the oracle.
HostInputs inputs_of(const Tensors& tensors);

template <typename T>
DeviceMemory upload(const Device& device, const std::vector<T>& values) {
  DeviceMemory memory = device.allocate(values.size() * sizeof(T));
  device.copy_to_device(memory.data(), values.data(), memory.bytes());
  return memory;
}

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_OUTSIDE_OUTSIDE_H_
