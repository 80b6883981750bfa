#ifndef ANNULUS_SIMULATOR_RUN_STILL_WATCH_H_
#define ANNULUS_SIMULATOR_RUN_STILL_WATCH_H_

// Finds out that co-resident clusters wait for ever: every warp that can run polls memory that no
// thread will write. On a GPU such a launch hangs.
//
// This is proven, not guessed from the time that has passed. Suppose that a warp's registers, local
// memory and place in the code are the same as at an earlier turn, and nothing that it could
// observe has changed since. Then it is in an endless loop. If all warps are, nothing will change.
// A warp can observe stores, atomics that change a value, copies, matrix products, and what
// Cluster::events counts.
//
// Loops that count, store or meet at a barrier in each round are not found. Nothing is found while
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
  // A cluster has had a turn. Returns true if nothing will ever change any more.
  bool turned(const Cluster& cluster);

 private:
  // The last stored state of a warp.
  struct Seen {
    std::uint64_t state = 0;   // a hash
    std::uint64_t turn = 0;    // the turn at which the state was stored
    std::uint64_t misses = 0;  // turns since then at which the state differed
    std::uint64_t patience = 16;
    std::uint64_t proven = 0;  // the turn at which the state came back, or 0
  };
  struct Watched {
    std::uint64_t activity = 0;
    std::vector<Seen> warps;  // by agent
  };

  // Checks the warp that had the turn. Returns true if it is in an endless loop. If that was proven
  // before, it is checked again only now and then.
  bool look(const Warp& warp, Seen& seen) const;
  bool all_proven() const;

  const bool able_;            // only the launch itself changes the memory that it reads
  std::uint64_t turn_ = 0;     // counts all turns
  std::uint64_t changed_ = 0;  // the last turn at which anything changed
  std::unordered_map<const Cluster*, Watched> watched_;
};

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_RUN_STILL_WATCH_H_
