// Ranks on threads, with public means alone.
#include "annulus/communicator.h"

#include <thread>

#include "annulus/error.h"
#include "outside/outside.h"

namespace {

using namespace annulus;

TEST_CASE("two ranks exchange bytes, and one that is given up says why") {
  const Device first = Device::open("sim:sm_80:0");
  const CommunicatorId id = make_communicator_id(first);
  std::vector<int> got(2);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      const Device device = Device::open("sim:sm_80:" + std::to_string(rank));
      const Communicator communicator = Communicator::open(device, id, 2, rank);
      const DeviceMemory memory = test::upload(device, std::vector<int>{10 + rank, 0});
      const SentBytes sent = {1 - rank, memory.data(), 4};
      const ReceivedBytes received = {1 - rank, static_cast<int*>(memory.data()) + 1, 4};
      communicator.exchange(nullptr, {&sent, 1}, {&received, 1});
      device.synchronize();
      device.copy_to_host(&got[static_cast<std::size_t>(rank)], received.to, 4);
      communicator.give_up("done");
      if (communicator.usable() || communicator.reason() != "done") got.clear();
      if (communicator.info().ranks != 2) got.clear();
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(got == std::vector<int>{11, 10});
  CHECK_THROWS_AS(Communicator::borrow(first, nullptr, {}), Error);
}

}  // namespace
