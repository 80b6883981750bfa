#ifndef ANNULUS_TESTS_EXCHANGE_RANKS_H_
#define ANNULUS_TESTS_EXCHANGE_RANKS_H_

// Ranks of this process for tests, each on a thread and a device of its own.

#include <chrono>
#include <cstdio>
#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "annulus/communicator.h"
#include "annulus/error.h"

namespace annulus::test {

inline Device rank_device(int rank) { return Device::open("sim:sm_80:" + std::to_string(rank)); }

// Runs body(communicator, device) for each rank and throws the first rank's error, if any had one.
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
        // The others may wait for this rank for ever, so that the test hangs: say why.
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

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_EXCHANGE_RANKS_H_
