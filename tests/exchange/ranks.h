#ifndef ANNULUS_TESTS_EXCHANGE_RANKS_H_
#define ANNULUS_TESTS_EXCHANGE_RANKS_H_

// Ranks of this process for tests. Each rank has a separate thread and a separate device.

#include <barrier>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "annulus/communicator.h"
#include "annulus/types.h"
#include "support/sanitized.h"

namespace annulus::test {

inline Device rank_device(int rank) { return Device::open("sim:sm_80:" + std::to_string(rank)); }

// Runs body(communicator, device) for each rank. If ranks throw errors, throws the error of the
// lowest rank.
inline void on_ranks(int ranks, const CommunicatorOptions& options,
                     const std::function<void(const Communicator&, const Device&)>& body) {
  const CommunicatorId id = make_communicator_id(rank_device(0));
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        const Device device = rank_device(rank);
        body(Communicator::open(device, id, ranks, rank, options), device);
      } catch (...) {
        // The others may wait for this rank for ever and hang the test, so the reason is printed.
        std::fprintf(stderr, "rank %d of %d has an error\n", rank, ranks);
        errors[static_cast<std::size_t>(rank)] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error != nullptr) std::rethrow_exception(error);
  }
}

// Runs body(rendezvous) for each rank of a meeting over an all-gather between threads.
inline void on_meeting(int ranks, const std::function<void(const Rendezvous&)>& body) {
  std::vector<std::vector<std::byte>> shared(static_cast<std::size_t>(ranks));
  std::barrier<> barrier(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const AllGather all_gather = [&](std::span<const std::byte> own) {
        shared[static_cast<std::size_t>(rank)].assign(own.begin(), own.end());
        barrier.arrive_and_wait();
        return shared;
      };
      body(Rendezvous::over(
          all_gather, {.address = "", .rank = rank, .ranks = ranks, .token = "", .interface = ""}));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Whether the condition becomes true within a few seconds.
inline bool comes_true(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + scaled(std::chrono::seconds(8));
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_EXCHANGE_RANKS_H_
