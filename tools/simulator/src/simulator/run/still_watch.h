#ifndef ANNULUS_SIMULATOR_RUN_STILL_WATCH_H_
#define ANNULUS_SIMULATOR_RUN_STILL_WATCH_H_

// Finds out that clusters which live together wait in vain: every warp that can run polls memory
// that nobody writes any more. On a GPU such a launch hangs.
//
// This is proven, not guessed from the time that has passed. A warp whose registers, local memory
// and place in the code are what they were at an earlier turn, while nothing that it could have
// learnt from has changed since, goes round in a loop for ever; and if all warps do, nothing will
// change. What it could have learnt from are stores, atomics that change what they find, copies,
// matrix products, and what Cluster::events counts.
//
// Loops that count, store or meet at a barrier in each round are not found, nor is anything while
// copies are under way. SimulatorOptions::limit ends such launches.

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "simulator/machine/cluster.h"
#include "simulator/run/launch.h"

namespace annulus::simulator {

class StillWatch {
 public:
  explicit StillWatch(const LaunchRequest& request);

  // A cluster has been started, or has ended.
  void start(const Cluster& cluster);
  void end(const Cluster& cluster);
  // A cluster has had a turn. True if nothing will ever change any more.
  bool turned(const Cluster& cluster);

 private:
  // What was last seen of a warp.
  struct Seen {
    std::uint64_t state = 0;   // a hash
    std::uint64_t turn = 0;    // when that was the state
    std::uint64_t misses = 0;  // turns since then at which the state was another one
    std::uint64_t patience = 16;
    std::uint64_t proven = 0;  // the turn at which the state came back; 0: it has not
  };
  struct Watched {
    std::uint64_t activity = 0;
    std::vector<Seen> warps;  // by agent
  };

  // Looks at the warp that had the turn. True if it goes round in a loop; where that was known
  // before, only now and then.
  bool look(const Warp& warp, Seen& seen) const;
  bool all_proven() const;

  const bool able_;            // nobody but the launch changes what it reads
  std::uint64_t turn_ = 0;     // counts all turns
  std::uint64_t changed_ = 0;  // the last turn at which anything changed
  std::unordered_map<const Cluster*, Watched> watched_;
};

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_RUN_STILL_WATCH_H_
