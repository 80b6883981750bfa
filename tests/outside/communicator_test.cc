// Ranks on threads, through the public interface only.
#include "annulus/communicator.h"

#include <barrier>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "annulus/types.h"
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

TEST_CASE("of three ranks one ends: the others say so, regroup and go on") {
  std::vector<std::vector<std::byte>> shared(3);
  std::barrier<> all_here(3);
  std::vector<std::string> wrong(3);
  std::vector<std::thread> threads;
  for (int number = 0; number < 3; ++number) {
    threads.emplace_back([&, number] {
      std::string& said = wrong[static_cast<std::size_t>(number)];
      const auto expect = [&](bool condition, const char* what) {
        if (!condition) said += std::string(what) + "; ";
      };
      const Device device = Device::open("sim:sm_80:" + std::to_string(number));
      const AllGather all_gather = [&](std::span<const std::byte> own) {
        shared[static_cast<std::size_t>(number)].assign(own.begin(), own.end());
        all_here.arrive_and_wait();
        return shared;
      };
      const Rendezvous ranks = Rendezvous::over(
          all_gather, {.address = "", .rank = number, .ranks = 3, .token = "", .interface = ""});
      expect(ranks.generation() == 1 && ranks.members().size() == 3, "generation 1");
      const ExchangeMemory memory = Communicator::open(device, ranks).allocate(1024);
      expect(memory.bytes() == 1024, "the memory");
      // A message to each other rank, and one message from each.
      const auto exchange = [&](const Communicator& communicator) {
        std::vector<SentBytes> sent;
        std::vector<ReceivedBytes> received;
        auto* next = static_cast<char*>(memory.data());
        for (int peer = 0; peer < communicator.ranks(); ++peer, next += 64) {
          if (peer == communicator.rank()) continue;
          sent.push_back({peer, next, 16});
          received.push_back({peer, next + 32, 16});
        }
        return communicator.exchange(nullptr, sent, received);
      };
      std::optional<Communicator> first = Communicator::open(device, ranks);
      const std::int64_t good = exchange(*first);
      expect(first->wait(good) == RunState::kGood && first->runs() == 1, "the first run");
      expect(std::string(to_string(first->state(good))) == "good", "its name");
      if (number == 1) return;
      std::int64_t run = -1;
      try {
        run = exchange(*first);
      } catch (const Error&) {
      }
      device.synchronize();
      if (run >= 0) expect(first->state(run) == RunState::kVoid, "a void run");
      expect(first->blamed() == std::vector<int>{1}, "who is blamed");
      expect(first->peers().size() == 2, "the peers");
      const std::vector<CommunicatorEvent> events = first->events();
      expect(!events.empty() && std::string(to_string(events[0].kind)) == "opened", "the events");
      RegroupOptions options;
      options.without = first->blamed();
      const Rendezvous left = ranks.regroup(options);
      expect(left.generation() == 2 && left.members() == std::vector<int>{0, 2}, "generation 2");
      expect(left.members_digest() != ranks.members_digest(), "the digest of other members");
      const Communicator second = Communicator::open(device, left);
      expect(second.wait(exchange(second)) == RunState::kGood, "the last run");
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& text : wrong) CHECK(text == "");
}

TEST_CASE("a lent communicator that is none is refused, with a rendezvous too") {
  const Device device = Device::open("sim:sm_80:0");
  const Rendezvous alone = Rendezvous::meet({.address = "", .token = "alone", .interface = ""});
  CHECK_THROWS_AS(Communicator::borrow(device, nullptr, alone, {}), Error);
}

}  // namespace
