// Ranks of a ring that are planned and run separately, through the public interface only.
#include "annulus/ring.h"

#include <thread>

#include "outside/outside.h"

namespace {

using namespace annulus;

TEST_CASE("two ranks on threads attend over the keys of both") {
  const Device first = Device::open("sim:sm_80:0");
  const CommunicatorId id = make_communicator_id(first);
  Problem problem;
  problem.seq_q = problem.seq_k = 128;
  problem.dim_qk = problem.dim_v = 64;
  const ShardMap shards = make_shards(Sharding::kContiguous, 2, 128, 128);
  std::vector<std::uint16_t> got(2);
  std::vector<std::thread> threads;
  for (int number = 0; number < 2; ++number) {
    threads.emplace_back([&, number] {
      const Device device = Device::open("sim:sm_80:" + std::to_string(number));
      const Communicator communicator = Communicator::open(device, id, 2, number);
      const RingRankPlan plan = plan_ring(device, communicator, problem, shards);
      if (plan.rank() != number || plan.ranks() != 2 || plan.info().rounds != 1) return;
      const Problem& own = plan.rank_problem();
      // Every value of V is the rank's number in bf16, so every output is the mean of these
      // numbers.
      const std::size_t count = static_cast<std::size_t>(own.seq_q * own.dim_qk);
      const DeviceMemory q = test::upload(device, std::vector<std::uint16_t>(count, 0));
      const DeviceMemory k = test::upload(device, std::vector<std::uint16_t>(count, 0));
      const DeviceMemory v =
          test::upload(device, std::vector<std::uint16_t>(count, number == 0 ? 0 : 0x3f80));
      const DeviceMemory o = device.allocate(count * 2);
      const DeviceMemory workspace = device.allocate(plan.workspace_bytes());
      RingCall call;
      const Strides strides = Strides::bshd(own.seq_q, own.heads, own.dim_qk);
      call.operands.q = q.data(), call.operands.k = k.data(), call.operands.v = v.data();
      call.operands.o = o.data();
      call.operands.q_strides = call.operands.k_strides = strides;
      call.operands.v_strides = call.operands.o_strides = strides;
      call.workspace = workspace.data();
      plan.run(call);
      device.synchronize();
      device.copy_to_host(&got[static_cast<std::size_t>(number)], o.data(), 2);
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(got == std::vector<std::uint16_t>{0x3f00, 0x3f00});
}

}  // namespace
