#ifndef ANNULUS_EXCHANGE_MEETING_H_
#define ANNULUS_EXCHANGE_MEETING_H_

// How ranks find each other (annulus/communicator.h):
//
//   rank r                          rank 0
//     hello (the address of r) -->    waits in the lobby until all are connected
//                              <--  welcome; from time to time the missing ranks
//                              <--  roster (the addresses of all ranks)
//     hello to each lower rank that it is not connected to; waits for the higher ranks
//     ready                    -->    waits until all are ready
//                              <--  go
//
// Every failure is reported to rank 0, which sends it to all others. If the engine provides an
// all-gather, the hellos travel through that all-gather, and rank 0 is connected in the same way as
// every other rank.

#include <chrono>
#include <cstdint>
#include <vector>

#include "annulus/communicator.h"
#include "base/files.h"
#include "exchange/socket.h"

namespace annulus::exchange {

// The longest time that ranks wait for each other, except in runs.
constexpr std::chrono::milliseconds kLongestDeadline = std::chrono::hours(24);

struct World {
  int rank = 0;
  int ranks = 1;
  std::vector<Link> links;  // indexed by rank; not open for this rank and for ranks that have gone
  std::int64_t generation = 1;
  // the members' numbers in generation 1; if empty, their current numbers
  std::vector<int> members = {};
  // Ranks that have not yet confirmed that they are in this generation. Frames that they send
  // before that belong to the previous generation.
  std::vector<int> to_say = {};
};

World meet(const RendezvousOptions& options, base::FileSystem& files);
World meet_over(const AllGather& all_gather, const RendezvousOptions& options);

}  // namespace annulus::exchange

#endif  // ANNULUS_EXCHANGE_MEETING_H_
