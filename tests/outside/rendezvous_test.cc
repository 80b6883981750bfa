// Ranks that meet, through the public interface only.
#include "annulus/communicator.h"

#include <unistd.h>

#include <barrier>
#include <filesystem>
#include <string>
#include <thread>

#include "annulus/types.h"
#include "outside/outside.h"

namespace {

using namespace annulus;
using namespace std::chrono_literals;

TEST_CASE("two ranks meet by a file, open a communicator and go on alone") {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("annulus-meeting-" + std::to_string(getpid())))
          .string();
  std::vector<int> right(2);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      const Device device = Device::open("sim:sm_80:" + std::to_string(rank));
      const Rendezvous meeting = Rendezvous::meet({.address = "file:" + path,
                                                   .rank = rank,
                                                   .ranks = 2,
                                                   .token = "outside",
                                                   .interface = ""});
      const Communicator communicator = Communicator::open(device, meeting);
      meeting.post({0, 7, rank});
      const std::byte mine{static_cast<unsigned char>(40 + rank)};
      const auto all = meeting.all_gather({&mine, 1}, 5s);
      const Gathered again = meeting.gather({&mine, 1}, 5s);
      const std::vector<RankState> states = meeting.states();
      const bool good = meeting.rank() == rank && meeting.ranks() == 2 &&
                        communicator.rank() == rank && all.size() == 2 && again.bytes == all &&
                        all[0][0] == std::byte{40} && all[1][0] == std::byte{41} &&
                        states.size() == 1 && states[0].rank == 1 - rank;
      right[static_cast<std::size_t>(rank)] = good ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(right == std::vector<int>{1, 1});
}

TEST_CASE("ranks meet over the caller's own all-gather") {
  std::vector<std::vector<std::byte>> shared(3);
  std::barrier<> all_here(3);
  std::vector<int> right(3);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      const AllGather all_gather = [&](std::span<const std::byte> own) {
        shared[static_cast<std::size_t>(rank)].assign(own.begin(), own.end());
        all_here.arrive_and_wait();
        return shared;
      };
      const Rendezvous meeting = Rendezvous::over(
          all_gather, {.address = "", .rank = rank, .ranks = 3, .token = "", .interface = ""});
      right[static_cast<std::size_t>(rank)] = meeting.all_gather({}, 5s).size() == 3 ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(right == std::vector<int>{1, 1, 1});
}

}  // namespace
