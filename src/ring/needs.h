#ifndef ANNULUS_RING_NEEDS_H_
#define ANNULUS_RING_NEEDS_H_

// Which rank sees a key of which shard. Exact, from intervals: no pair is looked at where a range
// of queries settles it.

#include <cstdint>
#include <vector>

#include "annulus/ring.h"
#include "pattern/classify.h"

namespace annulus::ring {

class Needs {
 public:
  explicit Needs(int ranks)
      : ranks_(ranks), needed_(static_cast<std::size_t>(ranks) * static_cast<std::size_t>(ranks)) {}

  int ranks() const { return ranks_; }
  // Whether some query of `rank` sees some key of the shard of `owner`.
  bool at(int rank, int owner) const { return needed_[index(rank, owner)] != 0; }
  void set(int rank, int owner, bool needed) { needed_[index(rank, owner)] = needed; }

 private:
  std::size_t index(int rank, int owner) const {
    return static_cast<std::size_t>(rank) * static_cast<std::size_t>(ranks_) +
           static_cast<std::size_t>(owner);
  }

  int ranks_;
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
