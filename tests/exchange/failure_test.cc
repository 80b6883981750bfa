// Communicators of ranks that have met. If a rank does not arrive, all others name it in time, even
// if only their devices wait for it.

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "annulus/communicator.h"
#include "annulus/types.h"
#include "exchange/ranks.h"
#include "support/sanitized.h"

namespace annulus {
namespace {

using namespace std::chrono_literals;
using test::comes_true;
using Clock = std::chrono::steady_clock;

// A message to each other rank, and one message from each.
class Neighbours {
 public:
  Neighbours(const Communicator& rank, const Device& device)
      : rank_(rank), memory_(device.allocate(128 * static_cast<std::size_t>(rank.ranks()))) {
    auto* next = static_cast<char*>(memory_.data());
    for (int peer = 0; peer < rank.ranks(); ++peer, next += 128) {
      if (peer == rank.rank()) continue;
      sent_.push_back({peer, next, 64});
      received_.push_back({peer, next + 64, 64});
    }
  }
  std::int64_t exchange(void* stream = nullptr) const {
    return rank_.exchange(stream, sent_, received_);
  }

 private:
  const Communicator& rank_;
  DeviceMemory memory_;
  std::vector<SentBytes> sent_;
  std::vector<ReceivedBytes> received_;
};

bool has_event(const Communicator& rank, CommunicatorEventKind kind) {
  for (const CommunicatorEvent& event : rank.events()) {
    if (event.kind == kind) return true;
  }
  return false;
}

TEST_CASE(
    "a rank that ends for the sake of one that died has not gone, and there is no reason why") {
  std::atomic<bool> may_die = false, seen = false;
  test::on_meeting(3, [&](const Rendezvous& ranks) {
    const Device device = test::rank_device(ranks.rank());
    std::optional<Communicator> rank = Communicator::open(device, ranks, {.deadline = 5s});
    ranks.all_gather({}, 5s);
    if (ranks.rank() == 1) {
      CHECK(comes_true([&] { return may_die.load(); }));
      return;
    }
    if (ranks.rank() == 2) {
      rank.reset();
      CHECK(comes_true([&] { return seen.load(); }));
      return;
    }
    CHECK(comes_true([&] { return rank->peers()[1].gone; }));
    CHECK(rank->peers()[1].reason == "it has ended its communicator");
    may_die = true;
    CHECK(comes_true([&] { return !rank->peers()[1].gone; }));
    const std::vector<RankState> peers = rank->peers();
    CHECK(peers[0].gone);
    CHECK(!peers[0].reason.empty());
    CHECK(peers[1].reason.empty());
    seen = true;
  });
}

TEST_CASE("runs are under way, then good, and peers say how far they are") {
  test::on_meeting(3, [&](const Rendezvous& ranks) {
    const Device device = test::rank_device(ranks.rank());
    const Communicator rank = Communicator::open(device, ranks, {.deadline = 5s});
    CHECK(rank.info().generation == 1);
    CHECK(rank.info().watched);
    const Neighbours neighbours(rank, device);
    CHECK(rank.runs() == 0);
    for (std::int64_t run = 0; run < 700; ++run) CHECK(neighbours.exchange() == run);
    CHECK(rank.runs() == 700);
    CHECK(rank.wait(0) == RunState::kGood);
    CHECK(rank.wait(699) == RunState::kGood);
    CHECK(rank.state(350) == RunState::kGood);
    CHECK_THROWS_AS(static_cast<void>(rank.state(700)), Error);
    CHECK_THROWS_AS(static_cast<void>(rank.state(-1)), Error);
    ranks.all_gather({}, 5s);
    CHECK(comes_true([&] {
      for (const RankState& peer : rank.peers()) {
        if (!peer.posted || peer.position.run != 700 || peer.position.round != -1) return false;
      }
      return true;
    }));
    CHECK(rank.peers().size() == 2);
    CHECK(rank.usable());
    CHECK(rank.blamed().empty());
    CHECK(has_event(rank, CommunicatorEventKind::kOpened));
    CHECK(!has_event(rank, CommunicatorEventKind::kGivenUp));
    ranks.all_gather({}, 5s);
  });
}

TEST_CASE("a rank whose messages do not come is named by all, and the streams go on") {
  for (const bool watched : {true, false}) {
    CAPTURE(watched);
    std::atomic<int> named = 0;
    test::on_meeting(4, [&](const Rendezvous& ranks) {
      const Device device = test::rank_device(ranks.rank());
      const Communicator rank =
          Communicator::open(device, ranks, {.deadline = test::scaled(400ms), .watched = watched});
      const Neighbours neighbours(rank, device);
      const std::int64_t good = neighbours.exchange();
      CHECK(rank.wait(good) == RunState::kGood);
      ranks.all_gather({}, 5s);
      if (ranks.rank() == 2) {  // it is alive but late
        CHECK(comes_true([&] { return named == 3; }));
        if (watched) {
          // It received the notice of the failure.
          CHECK(comes_true([&] { return !rank.usable(); }));
          CHECK(rank.blamed() == std::vector<int>{2});
        }
        return;
      }
      const Clock::time_point begin = Clock::now();
      const std::int64_t run = neighbours.exchange();
      if (watched) {
        device.synchronize();
      } else {
        CHECK(rank.wait(run) == RunState::kVoid);
      }
      CHECK(Clock::now() - begin < test::scaled(2s));
      CHECK(rank.state(run) == RunState::kVoid);
      CHECK(rank.state(good) == RunState::kGood);
      CHECK(rank.blamed() == std::vector<int>{2});
      CHECK_MESSAGE(rank.reason().find("rank 2 of 4 has not reached round 0 of run 1 within 4") !=
                        std::string::npos,
                    rank.reason());
      CHECK(has_event(rank, CommunicatorEventKind::kGivenUp));
      CHECK_THROWS_AS(neighbours.exchange(), Error);
      device.synchronize();
      named += 1;
    });
    CHECK(named == 3);
  }
}

TEST_CASE("a rank that has gone is named long before the deadline") {
  std::atomic<int> named = 0;
  test::on_meeting(4, [&](const Rendezvous& ranks) {
    const Device device = test::rank_device(ranks.rank());
    const Communicator rank = Communicator::open(device, ranks, {.deadline = 60s});
    const Neighbours neighbours(rank, device);
    CHECK(rank.wait(neighbours.exchange()) == RunState::kGood);
    ranks.all_gather({}, 5s);
    if (ranks.rank() == 1) {
      rank.give_up("this rank ends");
      return;
    }
    const Clock::time_point begin = Clock::now();
    try {
      neighbours.exchange();
    } catch (const Error&) {
    }
    device.synchronize();
    CHECK(Clock::now() - begin < test::scaled(3s));
    CHECK(rank.blamed() == std::vector<int>{1});
    CHECK(rank.reason().find("rank 1 of 4 ") != std::string::npos);
    named += 1;
  });
  CHECK(named == 3);
}

TEST_CASE("a run that cannot be queued is a failure of its rank, of which all others hear") {
  std::atomic<int> named = 0;
  test::on_meeting(2, [&](const Rendezvous& ranks) {
    const Device device = test::rank_device(ranks.rank());
    const Communicator rank = Communicator::open(device, ranks, {.deadline = 60s});
    const Neighbours neighbours(rank, device);
    CHECK(rank.wait(neighbours.exchange()) == RunState::kGood);
    // A run that is requested after the failure is refused, and has no number.
    if (ranks.rank() == 1) neighbours.exchange();
    ranks.all_gather({}, 5s);
    const Clock::time_point begin = Clock::now();
    if (ranks.rank() == 0) {
      char no_stream[64] = {};
      CHECK_THROWS_AS(neighbours.exchange(no_stream), Error);
      CHECK(rank.reason().find("rank 0 of 2 could not queue run 1: ") == 0);
    } else {
      device.synchronize();
    }
    CHECK(comes_true([&] { return !rank.usable(); }));
    CHECK(Clock::now() - begin < test::scaled(3s));
    CHECK(rank.state(1) == RunState::kVoid);
    CHECK(rank.state(0) == RunState::kGood);
    CHECK(rank.blamed() == std::vector<int>{0});
    named += 1;
    ranks.all_gather({}, 5s);
  });
  CHECK(named == 2);
}

TEST_CASE("messages that are queued arrive where the communicator ends right behind them") {
  std::atomic<int> good = 0;
  test::on_meeting(3, [&](const Rendezvous& ranks) {
    const Device device = test::rank_device(ranks.rank());
    std::optional<Communicator> rank = Communicator::open(device, ranks, {.deadline = 20s});
    const Neighbours neighbours(*rank, device);
    CHECK(rank->wait(neighbours.exchange()) == RunState::kGood);
    ranks.all_gather({}, 5s);
    if (ranks.rank() == 2) std::this_thread::sleep_for(400ms);
    const std::int64_t run = neighbours.exchange();
    if (ranks.rank() != 0) good += rank->wait(run) == RunState::kGood ? 1 : 0;
    rank.reset();
    ranks.all_gather({}, 5s);
  });
  CHECK(good == 2);
}

TEST_CASE("ranks that regroup open a smaller communicator") {
  std::atomic<int> good = 0;
  test::on_meeting(3, [&](const Rendezvous& first) {
    const Device device = test::rank_device(first.rank());
    const Communicator before = Communicator::open(device, first, {.deadline = 60s});
    CHECK(before.wait(Neighbours(before, device).exchange()) == RunState::kGood);
    if (first.rank() == 0) return;
    const Rendezvous second = first.regroup();
    CHECK(comes_true([&] { return !before.usable(); }));
    const Communicator after = Communicator::open(device, second, {.deadline = 5s});
    CHECK(after.info().generation == 2);
    CHECK(after.ranks() == 2);
    CHECK(after.wait(Neighbours(after, device).exchange()) == RunState::kGood);
    good += 1;
  });
  CHECK(good == 2);
}

}  // namespace
}  // namespace annulus
