// Rings whose ranks are planned and run separately, each on a thread, over a communicator.

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>

#include "annulus/simulator.h"
#include "annulus/types.h"
#include "exchange/ranks.h"
#include "ring/on_ring.h"
#include "support/nccl_options.h"
#include "support/options.h"
#include "support/sanitized.h"

namespace annulus {
namespace {

using namespace std::chrono_literals;
using test::Case;
using test::DeviceAnswer;
using test::devices;
using test::draw_streams;
using test::problem_of;
using test::RingMemory;

// The error of a rank, or nothing.
struct Ended {
  std::optional<ErrorCode> code;
  std::string text;
};

// Runs body(rank, communicator) on a thread for each rank.
std::vector<Ended> on_threads(
    int ranks, const CommunicatorOptions& options,
    const std::function<void(int rank, const Communicator& communicator)>& body) {
  const std::vector<Device>& ring = devices(ranks);
  const CommunicatorId id = make_communicator_id(ring[0]);
  std::vector<Ended> ended(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const auto at = static_cast<std::size_t>(rank);
      try {
        body(rank, Communicator::open(ring[at], id, ranks, rank, options));
      } catch (const Error& error) {
        ended[at] = {error.code(), error.what()};
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return ended;
}

void require_all_well(const std::vector<Ended>& ended) {
  for (const Ended& one : ended) REQUIRE(one.text == "");
}

TEST_CASE("ranks that are planned and run apart give the bits of ranks that are together") {
  const int count = test::options().problems > 0 ? test::options().problems : 14;
  for (int index = 0; index < count; ++index) {
    const Case c = test::random_ring_case(test::options().seed, static_cast<std::uint64_t>(index));
    base::Random random(test::options().seed * 17 + static_cast<std::uint64_t>(index));
    const int ranks = 1 + index % 7;
    const ShardMap shards = test::random_shards(random, ranks, c.problem.seq_q, c.problem.seq_k);
    CAPTURE(index);
    CAPTURE(ranks);
    CAPTURE(c.text);
    RingOptions options;
    options.route = static_cast<Route>(index % 3);
    const std::vector<Device>& ring = devices(ranks);
    draw_streams(ring, 0);
    const RingPlan together = plan_ring(ring, c.problem, shards, options);
    RingMemory memory(ring, c, shards);
    const DeviceAnswer want = test::run_ring(together, memory);
    test::check(c, want);
    memory.reset();
    draw_streams(ring, 1 + static_cast<std::uint64_t>(index));
    require_all_well(on_threads(
        ranks, {.blocking = index % 2 == 0}, [&](int rank, const Communicator& communicator) {
          const auto at = static_cast<std::size_t>(rank);
          const RingRankPlan plan = plan_ring(ring[at], communicator, c.problem, shards, options);
          const RingInfo& info = plan.info();
          const RingInfo& all = together.info();
          CHECK(plan.rank() == rank);
          CHECK(plan.ranks() == ranks);
          CHECK(plan.workspace_bytes() == together.workspace_bytes(rank));
          CHECK(plan.rank_problem().seq_q == together.rank_problem(rank).seq_q);
          CHECK(info.kernel == all.kernel);
          CHECK(info.config == all.config);
          CHECK(info.route == all.route);
          CHECK(info.bytes_sent == all.bytes_sent);
          CHECK(info.ranks[0].launches == all.ranks[at].launches);
          for (const std::string& line : info.schedule) {
            CHECK(std::ranges::count(all.schedule, line) == 1);
          }
          for (int run = 0; run < 2; ++run) {
            plan.run(memory.calls()[at]);
            ring[at].synchronize();
          }
        }));
    CHECK(memory.answer() == want);
  }
  draw_streams(devices(8), 0);
}

TEST_CASE(
    "ranks that differ are told so, all of them, and a ring that is asked of a rank alone waits no "
    "longer than it may") {
  const Case c = test::make_case(problem_of(128, causal()), 3);
  const ShardMap shards = make_shards(Sharding::kContiguous, 3, 128, 128);
  const auto ended_with =
      [&](const std::function<void(int, Problem*, ShardMap*, RingOptions*)>& change) {
        return on_threads(3, {}, [&](int rank, const Communicator& communicator) {
          Problem problem = c.problem;
          ShardMap own = shards;
          RingOptions options;
          change(rank, &problem, &own, &options);
          plan_ring(devices(3)[static_cast<std::size_t>(rank)], communicator, problem, own,
                    options);
        });
      };
  const auto check_all = [](const std::vector<Ended>& ended, ErrorCode code, const char* text) {
    for (const Ended& one : ended) {
      CHECK(one.code == code);
      CHECK_MESSAGE(one.text.find(text) != std::string::npos, one.text);
    }
  };
  check_all(ended_with([](int rank, Problem* problem, ShardMap*, RingOptions*) {
              if (rank == 1) problem->heads = 4;
            }),
            ErrorCode::kInvalidArgument, "rank 1");
  check_all(ended_with([](int rank, Problem*, ShardMap* own, RingOptions*) {
              if (rank == 2) *own = make_shards(Sharding::kZigzag, 3, 128, 128);
            }),
            ErrorCode::kInvalidArgument, "rank 2");
  check_all(ended_with([](int rank, Problem*, ShardMap*, RingOptions* options) {
              if (rank == 0) options->route = Route::kRing;
            }),
            ErrorCode::kInvalidArgument, "rank 0");
  check_all(ended_with([](int rank, Problem* problem, ShardMap*, RingOptions*) {
              if (rank == 1) problem->dim_qk = -3;
            }),
            ErrorCode::kInvalidArgument, "rank 1: ");
  check_all(ended_with([](int rank, Problem*, ShardMap*, RingOptions* options) {
              if (rank == 2) options->max_workspace_bytes = 1;
            }),
            ErrorCode::kOutOfMemory, "rank 2: ");
  check_all(ended_with([](int, Problem*, ShardMap* own, RingOptions*) {
              *own = make_shards(Sharding::kContiguous, 2, 128, 128);
            }),
            ErrorCode::kInvalidArgument, "shards for 2 ranks, and a communicator of 3");

  // Options that only one rank cannot fulfil, and a device that is not the communicator's.
  check_all(ended_with([](int rank, Problem*, ShardMap*, RingOptions* options) {
              if (rank == 1) options->max_multiprocessors = -3;
            }),
            ErrorCode::kInvalidArgument, "rank 1: ");
  check_all(on_threads(2, {},
                       [&](int rank, const Communicator& communicator) {
                         plan_ring(devices(2)[static_cast<std::size_t>(1 - rank)], communicator,
                                   c.problem, make_shards(Sharding::kContiguous, 2, 128, 128));
                       }),
            ErrorCode::kInvalidArgument, "rank 0: the communicator belongs to ");

  const auto begin = std::chrono::steady_clock::now();
  const std::vector<Ended> alone = on_threads(
      3, {.deadline = test::scaled(300ms), .planning = test::scaled(300ms)},
      [&](int rank, const Communicator& communicator) {
        if (rank == 1) return;
        plan_ring(devices(3)[static_cast<std::size_t>(rank)], communicator, c.problem, shards);
      });
  CHECK(alone[0].code == ErrorCode::kCommunication);
  CHECK(alone[2].code == ErrorCode::kCommunication);
  CHECK(std::chrono::steady_clock::now() - begin < test::scaled(3s));
}

TEST_CASE("a rank that does not plan is blamed by all, and planning ends where it is cancelled") {
  const Case c = test::make_case(problem_of(128, causal()), 8);
  const ShardMap shards = make_shards(Sharding::kZigzag, 3, 128, 128);
  for (const bool cancelled : {false, true}) {
    CAPTURE(cancelled);
    std::atomic<int> ended = 0;
    test::on_meeting(3, [&](const Rendezvous& meeting) {
      const Device device = test::rank_device(meeting.rank());
      const auto planning = cancelled ? 60s : test::scaled(600ms);
      const Communicator communicator = Communicator::open(device, meeting, {.planning = planning});
      if (meeting.rank() == 1) {
        CHECK(test::comes_true([&] { return ended == 2; }));
        return;
      }
      const bool cancels = cancelled && meeting.rank() == 2;
      const auto begin = std::chrono::steady_clock::now();
      RingOptions options;
      options.work.cancelled = [&] {
        return cancels && std::chrono::steady_clock::now() - begin > 100ms;
      };
      std::optional<ErrorCode> code;
      try {
        plan_ring(device, communicator, c.problem, shards, options);
      } catch (const Error& error) {
        code = error.code();
      }
      CHECK(code == (cancels ? ErrorCode::kCancelled : ErrorCode::kCommunication));
      CHECK(communicator.blamed() == std::vector<int>{cancelled ? 2 : 1});
      CHECK(std::chrono::steady_clock::now() - begin < 5s);
      ended += 1;
    });
    CHECK(ended == 2);
  }
}

TEST_CASE("a rank that does not run leaves the others within the deadline") {
  const Case c = test::make_case(problem_of(256, causal()), 3);
  const ShardMap shards = make_shards(Sharding::kZigzag, 3, 256, 256);
  const std::vector<Device>& ring = devices(3);
  RingMemory memory(ring, c, shards);
  const RingPlan together = plan_ring(ring, c.problem, shards);
  memory.make_workspace([&](int rank) { return together.workspace_bytes(rank); });
  std::atomic<int> gone = 0;
  on_threads(3, {.deadline = 10s}, [&](int rank, const Communicator& communicator) {
    const auto at = static_cast<std::size_t>(rank);
    const RingRankPlan plan = plan_ring(ring[at], communicator, c.problem, shards);
    if (rank == 2) return;
    plan.run(memory.calls()[at]);
    // Its messages are queued and will never arrive, so the caller gives up the communicator.
    std::this_thread::sleep_for(50ms);
    communicator.give_up("rank 2 did not come");
    ring[at].synchronize();
    try {
      plan.run(memory.calls()[at]);
    } catch (const Error& error) {
      gone += error.code() == ErrorCode::kCommunication &&
                      std::string(error.what()).find("rank 2 did not come") != std::string::npos
                  ? 1
                  : 0;
    }
  });
  CHECK(gone == 2);
}

TEST_CASE("survivors that meet again have the bits of a fresh ring of their number") {
  const Case c = test::make_case(problem_of(300, causal()), 8);
  const std::vector<Device>& ring = devices(3);
  const ShardMap three = make_shards(Sharding::kZigzag, 3, 300, 300);
  const ShardMap two = make_shards(Sharding::kZigzag, 2, 300, 300);
  const std::vector<Device> left = {ring[0], ring[2]};  // rank 1 dies
  const RingPlan fresh = plan_ring(left, c.problem, two);
  RingMemory memory(left, c, two);
  const DeviceAnswer want = test::run_ring(fresh, memory);
  memory.reset();
  RingMemory first(ring, c, three);
  const RingPlan together = plan_ring(ring, c.problem, three);
  first.make_workspace([&](int rank) { return together.workspace_bytes(rank); });
  const CommunicatorId again = make_communicator_id(ring[0]);
  std::atomic<int> survived = 0;
  const std::vector<Ended> ended =
      on_threads(3, {.deadline = 10s}, [&](int rank, const Communicator& communicator) {
        const auto at = static_cast<std::size_t>(rank);
        {
          const RingRankPlan plan = plan_ring(ring[at], communicator, c.problem, three);
          plan.run(first.calls()[at]);
          ring[at].synchronize();
          if (rank == 1) return;
          plan.run(first.calls()[at]);
          communicator.give_up("rank 1 has died");
        }
        const int number = rank == 0 ? 0 : 1;
        const Communicator smaller = Communicator::open(ring[at], again, 2, number);
        const RingRankPlan plan = plan_ring(ring[at], smaller, c.problem, two);
        plan.run(memory.calls()[static_cast<std::size_t>(number)]);
        ring[at].synchronize();
        ++survived;
      });
  require_all_well(ended);
  CHECK(survived == 2);
  CHECK(memory.answer() == want);
}

TEST_CASE(
    "ranks that have met name the one that is late or has gone, regroup, and have the bits of a "
    "fresh ring") {
  const Case c = test::make_case(problem_of(300, causal()), 8);
  constexpr int kRanks = 4;
  const std::vector<Device>& ring = devices(kRanks);
  const ShardMap all = make_shards(Sharding::kZigzag, kRanks, 300, 300);
  const ShardMap left = make_shards(Sharding::kZigzag, kRanks - 1, 300, 300);
  RingMemory first(ring, c, all);
  const RingPlan together = plan_ring(ring, c.problem, all);
  first.make_workspace([&](int rank) { return together.workspace_bytes(rank); });
  for (const bool goes : {true, false}) {
    for (int victim = 0; victim < kRanks; ++victim) {
      CAPTURE(goes);
      CAPTURE(victim);
      std::vector<Device> survivors = ring;
      survivors.erase(survivors.begin() + victim);
      const RingPlan fresh = plan_ring(survivors, c.problem, left);
      RingMemory memory(survivors, c, left);
      const DeviceAnswer want = test::run_ring(fresh, memory);
      memory.reset();
      std::atomic<int> named = 0, done = 0;
      test::on_meeting(kRanks, [&](const Rendezvous& meeting) {
        const int rank = meeting.rank();
        const Device& device = ring[static_cast<std::size_t>(rank)];
        const RingCall call = first.calls()[static_cast<std::size_t>(rank)];
        const Communicator communicator = Communicator::open(
            device, meeting, {.deadline = goes ? std::chrono::milliseconds(20s) : 300ms});
        {
          const RingRankPlan plan = plan_ring(device, communicator, c.problem, all);
          CHECK(communicator.wait(plan.run(call)) == RunState::kGood);
          meeting.all_gather({}, 5s);
          if (rank == victim) {
            if (!goes) CHECK(test::comes_true([&] { return named == kRanks - 1; }));
            return;
          }
          std::int64_t run = -1;
          try {
            run = plan.run(call);
          } catch (const Error& error) {
            CHECK(error.code() == ErrorCode::kCommunication);
          }
          device.synchronize();
          if (run >= 0) CHECK(communicator.state(run) == RunState::kVoid);
          CHECK_MESSAGE(communicator.blamed() == std::vector<int>{victim}, communicator.reason());
          named += 1;
        }
        const Rendezvous smaller =
            meeting.regroup({.without = communicator.blamed(), .at_least = 2, .deadline = 5s});
        const Communicator again = Communicator::open(device, smaller, {.deadline = 20s});
        const RingRankPlan plan = plan_ring(device, again, c.problem, left);
        const auto at = static_cast<std::size_t>(smaller.rank());
        CHECK(again.wait(plan.run(memory.calls()[at])) == RunState::kGood);
        device.synchronize();
        done += 1;
      });
      CHECK(done == kRanks - 1);
      CHECK(memory.answer() == want);
    }
  }
}

TEST_CASE(
    "every call of NCCL that fails is a typed error that names it, and nobody waits for ever") {
  const Case c = test::make_case(problem_of(128, causal()), 8);
  const std::vector<Device>& ring = devices(2);
  const ShardMap shards = make_shards(Sharding::kZigzag, 2, 128, 128);
  RingMemory memory(ring, c, shards);
  memory.make_workspace(
      [&](int rank) { return plan_ring(ring, c.problem, shards).workspace_bytes(rank); });
  const bool all = test::options().problems > 0;
  const std::vector<int> codes =
      all ? std::vector<int>{1, 2, 3, 4, 5, 6, 8} : std::vector<int>{2, 8};
  int failed = 0;
  for (const char* function :
       {"ncclCommInitRankConfig", "ncclGroupStart", "ncclSend", "ncclRecv", "ncclGroupEnd",
        "ncclCommGetAsyncError", "ncclCommFinalize", "ncclCommDestroy", "ncclCommAbort"}) {
    for (const int code : codes) {
      for (const unsigned after :
           all ? std::vector<unsigned>{0, 1, 2, 5, 9, 17} : std::vector<unsigned>{0, 6}) {
        CAPTURE(function);
        CAPTURE(code);
        CAPTURE(after);
        annulus_simulator_nccl_options options = ANNULUS_SIMULATOR_NCCL_OPTIONS_INIT;
        std::strcpy(options.fail_function, function);
        options.fail_after = after;
        options.fail_code = code;
        const auto begin = std::chrono::steady_clock::now();
        const CommunicatorId id = make_communicator_id(ring[0]);
        REQUIRE(test::set_nccl(options));
        std::vector<Ended> ended(2);
        std::vector<std::thread> threads;
        for (std::size_t rank = 0; rank < 2; ++rank) {
          threads.emplace_back([&, rank] {
            try {
              const Communicator communicator = Communicator::open(
                  ring[rank], id, 2, static_cast<int>(rank),
                  {.deadline = test::scaled(500ms), .planning = test::scaled(500ms)});
              const RingRankPlan plan = plan_ring(ring[rank], communicator, c.problem, shards);
              plan.run(memory.calls()[rank]);
            } catch (const Error& error) {
              ended[rank] = {error.code(), error.what()};
            }
          });
        }
        for (std::thread& thread : threads) thread.join();
        REQUIRE(test::set_nccl(ANNULUS_SIMULATOR_NCCL_OPTIONS_INIT));
        CHECK(std::chrono::steady_clock::now() - begin < test::scaled(3s));
        int named = 0;
        for (const Ended& one : ended) {
          if (!one.code) continue;
          CHECK(one.code != ErrorCode::kInternal);
          named += one.text.find(function) != std::string::npos ? 1 : 0;
        }
        // A rank that fails names the call. The other rank may have waited for that call.
        if (ended[0].code || ended[1].code) CHECK(named > 0);
        failed += named;
        for (const Device& device : ring) device.synchronize();
      }
    }
  }
  CHECK(failed >= (all ? 100 : 12));
}

}  // namespace
}  // namespace annulus
