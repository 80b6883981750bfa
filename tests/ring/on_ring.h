#ifndef ANNULUS_TESTS_RING_ON_RING_H_
#define ANNULUS_TESTS_RING_ON_RING_H_

// Rings on the devices of the tests, and the comparison of their answers.

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

#include "api/impl.h"
#include "attention/on_device.h"
#include "device/simulator.h"
#include "support/ring_case.h"

namespace annulus::test {

inline const std::vector<Device>& devices(int ranks) {
  static std::vector<Device> opened = test::ring_devices(8);
  static std::vector<std::vector<Device>> rings;
  if (rings.empty()) {
    for (int count = 0; count <= 8; ++count) {
      rings.emplace_back(opened.begin(), opened.begin() + count);
    }
  }
  return rings[static_cast<std::size_t>(ranks)];
}

inline DeviceAnswer run_ring(const RingPlan& plan, RingMemory& memory) {
  memory.make_workspace([&](int rank) { return plan.workspace_bytes(rank); });
  plan.run(memory.calls());
  return memory.answer();
}

// Makes every device run work only when a call waits for it, in an order drawn from the seed.
inline void draw_streams(const std::vector<Device>& ring, std::uint64_t seed) {
  abi::SimulatorOptions options;
  options.streams = seed == 0 ? 0 : 1;
  options.seed = seed;
  for (const Device& device : ring) {
    device::set_simulator_options(*api::inside(device).context, options);
  }
}

inline Problem problem_of(std::int64_t seq, const Pattern& pattern) {
  Problem problem;
  problem.heads = 2;
  problem.seq_q = problem.seq_k = seq;
  problem.dim_qk = problem.dim_v = 64;
  problem.pattern = pattern;
  problem.want_lse = true;
  return problem;
}

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_RING_ON_RING_H_
