// Every driver call of a ring may fail. Then the error is typed, nothing leaks, and the devices
// still work.

#include <doctest/doctest.h>

#include "annulus/types.h"
#include "api/impl.h"
#include "support/failing_table.h"
#include "support/ring_case.h"
#include "support/simulator.h"

namespace annulus {
namespace {

using test::FailingTable;

constexpr int kRanks = 3;

std::vector<Device> open_ring() {
  const auto driver = std::make_shared<const device::Driver>(
      FailingTable::wrap(test::simulator_table()), "the failing simulator");
  std::vector<Device> devices;
  for (int rank = 0; rank < kRanks; ++rank) {
    devices.push_back(api::open_on(driver, {true, "sm_80", rank}, {}, base::read_environment()));
  }
  return devices;
}

std::vector<std::size_t> free_bytes(const std::vector<Device>& devices) {
  std::vector<std::size_t> bytes;
  for (const Device& device : devices) {
    bytes.push_back(api::inside(device).context->memory().free_bytes);
  }
  return bytes;
}

TEST_CASE("the n-th call of planning and running a ring fails, for every n") {
  const std::vector<Device> devices = open_ring();
  Problem problem;
  problem.seq_q = problem.seq_k = 200;
  problem.dim_qk = problem.dim_v = 64;
  problem.pattern = causal();
  const test::Case c = test::make_case(problem, 61);
  const ShardMap shards = make_shards(Sharding::kZigzag, kRanks, 200, 200);
  test::RingMemory memory(devices, c, shards);
  const auto ranks = test::ring_ranks(devices, problem, shards);
  memory.make_workspace([](int) { return std::size_t{1} << 20; });
  bool in_ring = false;  // whether the failed call belongs to the ring and not to the test
  const auto flow = [&] {
    in_ring = true;
    const RingPlan plan = plan_ring(ranks);
    plan.run(memory.calls());
    in_ring = false;
    memory.synchronize();
  };
  flow();  // compiles the kernels
  const test::DeviceAnswer good = memory.answer();
  std::vector<std::size_t> before = free_bytes(devices);
  int index = 0;
  for (bool reached = true; reached; ++index) {
    CAPTURE(index);
    const bool memory_error = index % 2 == 0;
    FailingTable::fail_at(index, memory_error ? abi::kCudaOutOfMemory : abi::kCudaInvalidHandle);
    bool failed = false;
    try {
      flow();
    } catch (const Error& error) {
      failed = true;
      CHECK(error.code() == (memory_error ? ErrorCode::kOutOfMemory : ErrorCode::kDevice));
      // The error of a ring names the rank whose call failed.
      const std::string text = error.what();
      if (in_ring) CHECK_MESSAGE(text.starts_with("rank "), text);
    }
    reached = FailingTable::failed();
    if (reached) FailingTable::check_heard(failed);
    FailingTable::fail_at(-1, 0);
    for (const Device& device : devices) device.synchronize();
    // A failure without an error is a failure to release something. The memory is then lost.
    if (failed) CHECK(free_bytes(devices) == before);
    before = free_bytes(devices);
  }
  CHECK(index > 100);
  memory.reset();
  flow();
  CHECK(memory.answer() == good);
}

TEST_CASE("devices of two drivers make no ring") {
  std::vector<Device> devices = open_ring();
  const auto other =
      std::make_shared<const device::Driver>(test::simulator_table(), "another driver");
  devices[1] = api::open_on(other, {true, "sm_80", 1}, {}, base::read_environment());
  Problem problem;
  problem.seq_q = problem.seq_k = 200;
  problem.dim_qk = problem.dim_v = 64;
  const ShardMap shards = make_shards(Sharding::kContiguous, kRanks, 200, 200);
  std::string message;
  try {
    plan_ring(devices, problem, shards);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kInvalidArgument);
    message = error.what();
  }
  CHECK_MESSAGE(message.find("rank 1 brought sm_80, another driver") != std::string::npos, message);
}

}  // namespace
}  // namespace annulus
