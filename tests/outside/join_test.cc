// Gathering the queries of two ranks, and joining their answers, through the public interface only.
#include "annulus/join.h"

#include <thread>

#include "outside/outside.h"

namespace {

using namespace annulus;

TEST_CASE("two ranks get the mean of answers of equal weight, each its head") {
  const Device first = Device::open("sim:sm_80:0");
  const CommunicatorId id = make_communicator_id(first);
  std::vector<std::uint16_t> got(2);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      const Device device = Device::open("sim:sm_80:" + std::to_string(rank));
      const Communicator communicator = Communicator::open(device, id, 2, rank);
      const JoinProblem problem = {
          .heads = 2, .dim_v = 8, .max_rows = 1, .slices = JoinedSlices::kHeads};
      validate(problem);
      const JoinPlan plan = plan_join(device, communicator, problem);
      // The values 1 and 2 in bf16, whose mean is 1.5.
      const std::vector<std::uint16_t> ones(16, rank == 0 ? 0x3f80 : 0x4000);
      const DeviceMemory o = test::upload(device, ones);
      const DeviceMemory lse = test::upload(device, std::vector<float>{3, 3});
      const DeviceMemory joined = device.allocate(16);
      const DeviceMemory workspace = device.allocate(plan.workspace_bytes());
      JoinOperands operands;
      operands.rows = 1;
      operands.o = o.data();
      operands.lse = static_cast<const float*>(lse.data());
      operands.o_strides = {16, 8};
      operands.lse_strides = {2, 1};
      operands.joined_o = joined.data();
      operands.joined_o_strides = {8, 8};
      plan.run(nullptr, operands, workspace.data());
      device.synchronize();
      // Each rank has one head of a query.
      const GatherProblem queries = {.heads = 2, .dim = 8, .max_rows = 1};
      validate(queries);
      const GatherPlan gather = plan_gather(device, communicator, queries);
      const DeviceMemory all = device.allocate(32),
                         scratch = device.allocate(gather.workspace_bytes());
      GatherOperands rows;
      rows.rows = 1;
      rows.q = o.data();
      rows.gathered = all.data();
      rows.q_strides = {8, 8};
      rows.gathered_strides = {16, 8};
      gather.run(nullptr, rows, scratch.data());
      device.synchronize();
      std::vector<std::uint16_t> both(16);
      device.copy_to_host(both.data(), all.data(), 32);
      const bool good = gather.problem().heads == 2 && both[7] == 0x3f80 && both[8] == 0x4000 &&
                        plan.info().exchanges == 1 && plan.problem().heads == 2 &&
                        slice_of(2, 2, rank).begin == rank &&
                        std::string(to_string(problem.slices)) == "heads";
      if (good) device.copy_to_host(&got[static_cast<std::size_t>(rank)], joined.data(), 2);
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(got == std::vector<std::uint16_t>{0x3fc0, 0x3fc0});
}

}  // namespace
