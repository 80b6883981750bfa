// One rank of many rings, in a separate process. The ranks plan and run random cases one after
// another over one communicator.
//
//   case_rank FILE RANK RANKS DEVICE SEED FIRST COUNT
//
// For each case it writes "case INDEX HASH", with the hash of its rows of O and LSE
// (ring/case_rows.h).

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "annulus/communicator.h"
#include "annulus/types.h"
#include "ring/case_rows.h"

namespace annulus::test {
namespace {

int run(char** words) {
  const int rank = std::atoi(words[2]), ranks = std::atoi(words[3]);
  const std::uint64_t seed = std::strtoull(words[5], nullptr, 10);
  const int first = std::atoi(words[6]), count = std::atoi(words[7]);
  const Rendezvous meeting = Rendezvous::meet({.address = std::string("file:") + words[1],
                                               .rank = rank,
                                               .ranks = ranks,
                                               .token = "cases",
                                               .interface = ""});
  const Device device = Device::open(std::string(words[4]) + ":" + std::to_string(rank));
  const Communicator communicator = Communicator::open(device, meeting);
  for (int index = first; index < first + count; ++index) {
    const RingCase c(seed, index, ranks);
    const RingRankPlan plan = plan_ring(device, communicator, c.whole.problem, c.shards, c.options);
    // The tensors of the other ranks are here too, but unused.
    RingMemory memory(std::vector<Device>(static_cast<std::size_t>(ranks), device), c.whole,
                      c.shards);
    memory.make_workspace([&](int) { return plan.workspace_bytes(); });
    const std::int64_t number = plan.run(memory.calls()[static_cast<std::size_t>(rank)]);
    device.synchronize();
    if (communicator.wait(number) != RunState::kGood) {
      std::fprintf(stderr, "case %d: %s\n", index, communicator.reason().c_str());
      return 1;
    }
    std::printf("case %d %llu\n", index,
                static_cast<unsigned long long>(hash_rows(c, memory.answer(), rank)));
    std::fflush(stdout);
  }
  // No rank ends before all ranks have their last rows.
  meeting.all_gather({}, std::chrono::minutes(1));
  return 0;
}

}  // namespace
}  // namespace annulus::test

int main(int count, char** words) {
  if (count != 8) return 2;
  try {
    return annulus::test::run(words);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "a rank ended with: %s\n", error.what());
    return 1;
  }
}
