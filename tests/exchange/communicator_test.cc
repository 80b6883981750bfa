// Communicators: ranks of one process exchange bytes, and no wait for another rank lasts for ever.

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <barrier>
#include <cstring>

#include "api/rendezvous_impl.h"
#include "exchange/gather.h"
#include "exchange/ranks.h"
#include "support/simulator.h"

namespace annulus {
namespace {

using namespace std::chrono_literals;

using Millis = std::chrono::milliseconds;

ErrorCode code_of(const std::function<void()>& call, std::string* text = nullptr) {
  try {
    call();
  } catch (const Error& error) {
    if (text != nullptr) *text = error.what();
    return error.code();
  }
  return ErrorCode::kInternal;
}

std::vector<int> numbers(int first) {
  std::vector<int> all(32);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = first + static_cast<int>(i);
  return all;
}

TEST_CASE("ranks exchange bytes with all others, blocking or not") {
  for (const bool blocking : {false, true}) {
    for (const int ranks : {1, 2, 5}) {
      CAPTURE(blocking);
      CAPTURE(ranks);
      std::atomic<int> right = 0;
      test::on_ranks(
          ranks, {.blocking = blocking}, [&](const Communicator& rank, const Device& on) {
            CHECK(rank.info().simulated);
            CHECK(rank.info().nccl_version == 22809);
            const std::vector<int> mine = numbers(1000 * rank.rank());
            const std::size_t bytes = mine.size() * 4;
            const DeviceMemory from = on.allocate(bytes);
            const DeviceMemory to = on.allocate(bytes * static_cast<std::size_t>(ranks));
            on.copy_to_device(from.data(), mine.data(), bytes);
            std::vector<SentBytes> sends;
            std::vector<ReceivedBytes> receives;
            const auto place = [&](int peer) {
              return static_cast<char*>(to.data()) + bytes * static_cast<std::size_t>(peer);
            };
            for (int peer = 0; peer < ranks; ++peer) {
              if (peer == rank.rank()) continue;
              sends.push_back({peer, from.data(), bytes});
              receives.push_back({peer, place(peer), bytes});
            }
            for (int round = 0; round < 3; ++round) rank.exchange(nullptr, sends, receives);
            on.synchronize();
            for (const ReceivedBytes& one : receives) {
              std::vector<int> got(mine.size());
              on.copy_to_host(got.data(), one.to, bytes);
              right += got == numbers(1000 * one.from) ? 1 : 0;
            }
          });
      CHECK(right == ranks * (ranks - 1));
    }
  }
}

TEST_CASE("a rank that does not come is waited for until the deadline") {
  std::string text;
  const auto begin = std::chrono::steady_clock::now();
  const Device device = test::rank_device(0);
  const ErrorCode code = code_of(
      [&] { Communicator::open(device, make_communicator_id(device), 3, 1, {.planning = 100ms}); },
      &text);
  CHECK(code == ErrorCode::kCommunication);
  CHECK(text.find("rank 1 of 3 waited 100 ms for the other ranks to meet it") != std::string::npos);
  CHECK(std::chrono::steady_clock::now() - begin < 2s);
}

TEST_CASE("a group that the peer does not join is given up at the deadline") {
  std::atomic<int> seen = 0;
  test::on_ranks(2, {.deadline = 200ms}, [&](const Communicator& rank, const Device& on) {
    const DeviceMemory memory = on.allocate(64);
    if (rank.rank() == 1) {
      std::this_thread::sleep_for(400ms);
      return;
    }
    const SentBytes sent = {1, memory.data(), 64};
    std::string text;
    // The first group between two ranks connects them.
    CHECK(code_of(
              [&] {
                rank.exchange(nullptr, {&sent, 1}, {});
              },
              &text) == ErrorCode::kCommunication);
    CHECK(text.find("rank 0 of 2 waited 200 ms for a group of messages") != std::string::npos);
    CHECK(!rank.usable());
    CHECK(rank.reason() == text);
    CHECK(code_of(
              [&] {
                rank.exchange(nullptr, {&sent, 1}, {});
              },
              &text) == ErrorCode::kCommunication);
    CHECK(text.find("was given up") != std::string::npos);
    on.synchronize();  // the stream is no longer blocked
    ++seen;
  });
  CHECK(seen == 1);
}

TEST_CASE("a communicator that is given up frees its stream") {
  std::atomic<int> seen = 0;
  test::on_ranks(2, {.deadline = 10s}, [&](const Communicator& rank, const Device& on) {
    const DeviceMemory memory = on.allocate(128);
    const int peer = 1 - rank.rank();
    const SentBytes sent = {peer, memory.data(), 64};
    const ReceivedBytes received = {peer, static_cast<char*>(memory.data()) + 64, 64};
    on.copy_to_device(memory.data(), numbers(0).data(), 128);
    rank.exchange(nullptr, {&sent, 1}, {&received, 1});
    on.synchronize();
    if (rank.rank() == 1) return;
    rank.exchange(nullptr, {}, {&received, 1});
    rank.give_up("the test says so");
    on.synchronize();
    int got = 0;
    on.copy_to_host(&got, received.to, 4);
    CHECK(got == -1);  // the poison of a communicator that was given up
    ++seen;
  });
  CHECK(seen == 1);
}

TEST_CASE(
    "texts of all ranks come to all, however long, and a rank that does not come is waited for") {
  const device::DriverPointer driver = test::simulator_driver();
  const CommunicatorId id = make_communicator_id(test::rank_device(0));
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (int number = 0; number < 3; ++number) {
    threads.emplace_back([&, number] {
      const auto context =
          device::Context::retain(driver, test::number_of_simulated(*driver, "sm_80", number));
      const auto rank = exchange::Rank::open(context, exchange::open_nccl(*context, true), id, 3,
                                             number, {.planning = 1500ms}, nullptr);
      const auto text = [](int of) {
        return std::string(static_cast<std::size_t>(of) * 1000, 'a');
      };
      for (int time = 0; time < 2; ++time) {
        const std::vector<std::string> all = exchange::all_gather(*rank, text(number));
        right += all == std::vector<std::string>{text(0), text(1), text(2)} ? 1 : 0;
      }
      right += exchange::all_gather(*rank, "") == std::vector<std::string>(3) ? 1 : 0;
      if (number == 2) return;
      std::string said;
      const ErrorCode code = code_of([&] { exchange::all_gather(*rank, "x"); }, &said);
      right += code == ErrorCode::kCommunication ? 1 : 0;
      right += said.find("waited 1500 ms for the other ranks to send the sizes that they bring") !=
                       std::string::npos
                   ? 1
                   : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(right == 13);
}

TEST_CASE("memory of a communicator is exchanged like any other, and none is too much") {
  std::atomic<int> right = 0;
  test::on_ranks(2, {}, [&](const Communicator& rank, const Device& on) {
    const ExchangeMemory memory = rank.allocate(4096);
    CHECK(memory.bytes() == 4096);
    CHECK(rank.allocate(0).data() == nullptr);
    std::string text;
    CHECK(code_of([&] { rank.allocate(std::size_t{1} << 60); }, &text) == ErrorCode::kOutOfMemory);
    CHECK(text.find("NCCL's last message: ncclMemAlloc: cuMemAlloc of 1152921504606846976 bytes") !=
          std::string::npos);
    const int peer = 1 - rank.rank();
    on.copy_to_device(memory.data(), numbers(rank.rank()).data(), 128);
    const SentBytes sent = {peer, memory.data(), 128};
    const ReceivedBytes received = {peer, static_cast<char*>(memory.data()) + 1024, 128};
    CHECK(rank.wait(rank.exchange(nullptr, {&sent, 1}, {&received, 1})) == RunState::kGood);
    std::vector<int> got(32);
    on.copy_to_host(got.data(), received.to, 128);
    right += got == numbers(peer) ? 1 : 0;
  });
  CHECK(right == 2);
}

TEST_CASE("what ranks bring is checked") {
  const Device device = test::rank_device(0);
  const CommunicatorId id = make_communicator_id(device);
  std::string text;
  CHECK(code_of([&] { Communicator::open(device, id, 2, 2); }, &text) ==
        ErrorCode::kInvalidArgument);
  CHECK(text.find("rank 2 of 2") != std::string::npos);
  CHECK(code_of([&] { Communicator::open(device, id, 0, 0); }) == ErrorCode::kInvalidArgument);
  CHECK(code_of([&] { Communicator::open(device, id, 1, 0, {.deadline = Millis(-1)}); }) ==
        ErrorCode::kInvalidArgument);
  CHECK(code_of([&] { Communicator::open(device, CommunicatorId{}, 1, 0); }) ==
        ErrorCode::kInvalidArgument);
  CHECK(code_of([&] { Communicator::borrow(device, nullptr, {}); }) == ErrorCode::kInvalidArgument);
  test::on_ranks(2, {}, [&](const Communicator& rank, const Device& on) {
    const DeviceMemory memory = on.allocate(64);
    const auto refuses = [&](const SentBytes& sent) {
      return code_of([&] {
               rank.exchange(nullptr, {&sent, 1}, {});
             }) == ErrorCode::kInvalidArgument;
    };
    CHECK(refuses({2, memory.data(), 64}));
    CHECK(refuses({-1, memory.data(), 64}));
    CHECK(refuses({rank.rank(), memory.data(), 64}));
    CHECK(refuses({1 - rank.rank(), nullptr, 64}));
    CHECK(rank.usable());
    rank.exchange(nullptr, {}, {});
  });
}

TEST_CASE("ranks that have met open a communicator, and what fails on one is told to all") {
  std::atomic<int> good = 0;
  test::on_meeting(3, [&](const Rendezvous& ranks) {
    const Device device = test::rank_device(ranks.rank());
    {
      const Communicator communicator = Communicator::open(device, ranks);
      good += communicator.rank() == ranks.rank() && communicator.ranks() == 3 ? 1 : 0;
    }
    // Rank 1's options are wrong.
    std::string text;
    const Millis deadline(ranks.rank() == 1 ? -5 : 5000);
    const ErrorCode code =
        code_of([&] { Communicator::open(device, ranks, {.deadline = deadline}); }, &text);
    good += code == ErrorCode::kInvalidArgument ? 10 : 0;
    good +=
        text.find(ranks.rank() == 1 ? "a deadline of -5 ms" : "rank 1 of 3: a deadline of -5") == 0
            ? 100
            : 0;
    const int ctas = ranks.rank() == 0 ? 33 : 8;
    CHECK(code_of([&] { Communicator::open(device, ranks, {.ctas = ctas}); }, &text) ==
          ErrorCode::kInvalidArgument);
    CHECK(text.find("33 CTAs for NCCL's kernels") != std::string::npos);
    // Rank 2 has gone.
    if (ranks.rank() == 2) return;
    good += code_of([&] { Communicator::open(device, ranks, {.deadline = 5s}); }, &text) ==
                    ErrorCode::kCommunication
                ? 1000
                : 0;
    CHECK(text == "rank 2 of 3 has gone");
  });
  CHECK(good == 2333);
}

// NCCL that is slow on one of two ranks: its initialisation lasts until the other rank has left.
std::atomic<bool> peer_has_left = false;
const abi::NcclTable* simulated_nccl = nullptr;

abi::NcclResult late_async_error(abi::NcclComm comm, abi::NcclResult* error) {
  if (peer_has_left) return simulated_nccl->comm_get_async_error(comm, error);
  *error = abi::kNcclInProgress;
  return abi::kNcclSuccess;
}

abi::NcclResult late_finalize(abi::NcclComm comm) {
  std::this_thread::sleep_for(300ms);
  peer_has_left = true;
  return simulated_nccl->comm_finalize(comm);
}

TEST_CASE("a rank that has ended its communicator is not missed by one that still opens it") {
  const device::DriverPointer driver = test::simulator_driver();
  const auto simulated = exchange::open_nccl(
      *device::Context::retain(driver, test::number_of_simulated(*driver, "sm_80", 0)), true);
  simulated_nccl = &simulated->table;
  const CommunicatorId id = make_communicator_id(test::rank_device(0));
  peer_has_left = false;
  std::array<std::string, 2> errors;
  test::on_meeting(2, [&](const Rendezvous& ranks) {
    const int number = ranks.rank();
    const auto context =
        device::Context::retain(driver, test::number_of_simulated(*driver, "sm_80", number));
    const auto nccl = std::make_shared<abi::NcclLibrary>();
    nccl->table = simulated->table;
    nccl->report = simulated->report;
    if (number == 0) {
      nccl->table.comm_get_async_error = late_async_error;
    } else {
      nccl->table.comm_finalize = late_finalize;
    }
    try {
      exchange::Rank::open(context, nccl, id, 2, number, {.planning = 20s}, ranks.impl()->control);
    } catch (const Error& error) {
      errors[static_cast<std::size_t>(number)] = error.what();
    }
  });
  CHECK(errors[0] == "");
  CHECK(errors[1] == "");
  CHECK(peer_has_left);
}

TEST_CASE("a run that a graph was captured of has no state, and nobody waits for it") {
  const device::DriverPointer driver = test::simulator_driver();
  const abi::CudaTable& cuda = driver->table();
  std::atomic<int> right = 0;
  test::on_ranks(2, {.blocking = true}, [&](const Communicator& rank, const Device& on) {
    const auto context =
        device::Context::retain(driver, test::number_of_simulated(*driver, "sm_80", rank.rank()));
    const device::ContextScope scope(*context);
    const device::Stream stream(context);
    const DeviceMemory memory = on.allocate(128);
    const int peer = 1 - rank.rank();
    const SentBytes sent = {peer, memory.data(), 64};
    const ReceivedBytes received = {peer, static_cast<char*>(memory.data()) + 64, 64};
    const auto exchange = [&] {
      return rank.exchange(stream.handle(), {&sent, 1}, {&received, 1});
    };
    CHECK(rank.wait(exchange()) == RunState::kGood);
    REQUIRE(cuda.stream_begin_capture(stream.handle(), 1) == abi::kCudaSuccess);
    const std::int64_t captured = exchange();
    abi::CUgraph graph = nullptr;
    REQUIRE(cuda.stream_end_capture(stream.handle(), &graph) == abi::kCudaSuccess);
    CHECK(cuda.graph_destroy(graph) == abi::kCudaSuccess);
    std::string text;
    CHECK(code_of([&] { static_cast<void>(rank.wait(captured)); }, &text) ==
          ErrorCode::kInvalidArgument);
    CHECK(text.find("a graph was captured of run 1") != std::string::npos);
    CHECK(code_of([&] { static_cast<void>(rank.state(captured)); }) == ErrorCode::kInvalidArgument);
    CHECK(rank.usable());
    CHECK(rank.wait(exchange()) == RunState::kGood);
    ++right;
  });
  CHECK(right == 2);
}

TEST_CASE("a deadline that is longer than any clock counts is endless") {
  std::atomic<int> good = 0;
  test::on_ranks(
      2, {.deadline = Millis::max(), .planning = Millis::max()},
      [&](const Communicator& rank, const Device& on) {
        const DeviceMemory memory = on.allocate(128);
        const int peer = 1 - rank.rank();
        const SentBytes sent = {peer, memory.data(), 64};
        const ReceivedBytes received = {peer, static_cast<char*>(memory.data()) + 64, 64};
        const auto run = rank.exchange(nullptr, {&sent, 1}, {&received, 1});
        good += rank.wait(run) == RunState::kGood ? 1 : 0;
      });
  CHECK(good == 2);
}

TEST_CASE("two ranks on one device are refused on both, by name") {
  const Device device = test::rank_device(0);
  const CommunicatorId id = make_communicator_id(device);
  std::atomic<int> refused = 0;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      if (code_of([&] { Communicator::open(device, id, 2, rank, {.planning = 5s}); }) ==
          ErrorCode::kInvalidArgument) {
        ++refused;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(refused == 2);
}

}  // namespace
}  // namespace annulus
