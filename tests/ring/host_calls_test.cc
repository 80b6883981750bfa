// The driver calls of a run of one rank.

#include <doctest/doctest.h>

#include <string>
#include <thread>

#include "annulus/types.h"
#include "api/device_name.h"
#include "ring/on_ring.h"
#include "support/counted_calls.h"
#include "support/simulator.h"

namespace annulus {
namespace {

using test::Case;
using test::CountedCalls;
using test::devices;
using test::problem_of;
using test::RingMemory;

TEST_CASE("a rank makes at most eight calls of the driver for each round of a run") {
  const Case c = test::make_case(problem_of(600, causal()), 8);
  constexpr int kRanks = 5;
  constexpr int kOnce = 9;  // packing, the rank's own keys, begin and end
  RingOptions options;
  options.route = Route::kRing;  // it has a round for each hop
  const ShardMap shards = make_shards(Sharding::kZigzag, kRanks, 600, 600);
  // Only the calls of rank 0 are counted. No thread watches the ring, so all of them belong to its
  // run.
  std::vector<Device> ring = devices(kRanks);
  ring[0] = api::open_on(
      std::make_shared<const device::Driver>(CountedCalls::wrap(test::simulator_table()),
                                             api::inside(ring[0]).context->driver().name()),
      api::parse_device_name(ring[0].info().name), {}, base::read_environment());
  const RingPlan together = plan_ring(devices(kRanks), c.problem, shards, options);
  RingMemory memory(ring, c, shards);
  memory.make_workspace([&](int rank) { return together.workspace_bytes(rank); });
  const CommunicatorId id = make_communicator_id(ring[0]);
  std::vector<std::thread> threads;
  std::vector<std::string> failed(kRanks);
  int rounds = 0;
  std::string called;
  long calls = 0;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      const auto at = static_cast<std::size_t>(rank);
      try {
        const Communicator communicator =
            Communicator::open(ring[at], id, kRanks, rank, {.watched = false});
        const RingRankPlan plan = plan_ring(ring[at], communicator, c.problem, shards, options);
        if (rank == 0) CountedCalls::counting = true;
        const std::int64_t run = plan.run(memory.calls()[at]);
        if (rank == 0) {
          CountedCalls::counting = false;
          rounds = plan.info().rounds;
          called = CountedCalls::called();
          // cuCtxGetCurrent only reads a variable of the thread. A tensor map, which the wgmma
          // family has for each launch, is computed on the host. Neither call uses a device.
          calls = CountedCalls::calls("cu") - CountedCalls::calls("cuCtxGetCurrent") -
                  CountedCalls::calls("cuTensorMapEncodeTiled");
        }
        if (communicator.wait(run) != RunState::kGood) failed[at] = communicator.reason();
      } catch (const Error& error) {
        failed[at] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& text : failed) CHECK(text == "");
  CAPTURE(called);
  REQUIRE(rounds >= 2);
  CHECK(calls <= 8 * rounds + kOnce);
}

}  // namespace
}  // namespace annulus
