#ifndef ANNULUS_EXCHANGE_MEETING_H_
#define ANNULUS_EXCHANGE_MEETING_H_

// How ranks find each other (annulus/communicator.h):
//
//   rank r                          rank 0
//     hello (where r listens)  -->    in the lobby, until all have come
//                              <--  welcome; now and then who is missing
//                              <--  roster (where all listen)
//     hello to each rank below it that it is not connected to; waits for those above it
//     ready                    -->    until all are
//                              <--  go
//
// Whatever fails is told to rank 0, which tells all the others. With an all-gather of the engine's
// the hellos travel through that, and rank 0 is connected to as every other rank is.

#include <chrono>
#include <cstdint>
#include <vector>

#include "annulus/communicator.h"
#include "base/files.h"
#include "exchange/socket.h"

namespace annulus::exchange {

// Ranks wait no longer than that for each other, but in runs.
constexpr std::chrono::milliseconds kLongestDeadline = std::chrono::hours(24);

struct World {
  int rank = 0;
  int ranks = 1;
  std::vector<Link> links;  // by rank; its own is not open, nor that of a rank that has gone
  std::int64_t generation = 1;
  std::vector<int> members = {};  // their numbers in generation 1; empty: their own
  // Ranks that have not said yet that they are of this generation: what comes before is of the
  // one before.
  std::vector<int> to_say = {};
};

World meet(const RendezvousOptions& options, base::FileSystem& files);
World meet_over(const AllGather& all_gather, const RendezvousOptions& options);

}  // namespace annulus::exchange

#endif  // ANNULUS_EXCHANGE_MEETING_H_
