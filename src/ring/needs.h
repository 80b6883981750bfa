#ifndef ANNULUS_RING_NEEDS_H_
#define ANNULUS_RING_NEEDS_H_

// Which rank sees a key of which shard, through which branch of a sum. The answer is exact and
// comes from intervals of keys: single queries are asked only where a range of queries leaves
// doubt.

#include <cstdint>
#include <vector>

#include "annulus/ring.h"
#include "pattern/classify.h"

namespace annulus::ring {

class Needs {
 public:
  explicit Needs(int ranks, int branches = 1)
      : ranks_(ranks),
        branches_(branches),
        needed_(static_cast<std::size_t>(ranks) * static_cast<std::size_t>(ranks) *
                static_cast<std::size_t>(branches)) {}

  int ranks() const { return ranks_; }
  int branches() const { return branches_; }  // of the pattern's sum; else 1
  // Whether some query of `rank` sees some key of the shard of `owner`, through any branch.
  bool at(int rank, int owner) const {
    for (int branch = 0; branch < branches_; ++branch) {
      if (at(rank, owner, branch)) return true;
    }
    return false;
  }
  // Whether some query of `rank` sees some key of that shard through this branch alone.
  bool at(int rank, int owner, int branch) const {
    return needed_[index(rank, owner, branch)] != 0;
  }
  void set(int rank, int owner, bool needed, int branch = 0) {
    needed_[index(rank, owner, branch)] = needed;
  }

 private:
  std::size_t index(int rank, int owner, int branch) const {
    return (static_cast<std::size_t>(branch) * static_cast<std::size_t>(ranks_) +
            static_cast<std::size_t>(rank)) *
               static_cast<std::size_t>(ranks_) +
           static_cast<std::size_t>(owner);
  }

  int ranks_;
  int branches_;
  std::vector<std::uint8_t> needed_;
};

// Requires: validate(shards, problem) passes.
Needs find_needs(const Problem& problem, const ShardMap& shards);

// The positions of a rank's queries and of an owner's keys; no segment is empty, unless it is the
// only one.
pattern::Placement placement_of(const Problem& problem, const ShardMap& shards, int rank,
                                int owner);

}  // namespace annulus::ring

#endif  // ANNULUS_RING_NEEDS_H_
