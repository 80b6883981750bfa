#ifndef ANNULUS_RING_NEEDS_H_
#define ANNULUS_RING_NEEDS_H_

// Finds the rows of each shard that each rank sees, through each branch of a sum. The answer comes
// from intervals of keys. The pattern is evaluated for a whole segment of queries at once. If that
// leaves keys undecided, it is evaluated for the segment's halves, and for single queries only at
// the end. So the time does not grow with the length of a pattern of bands.

#include <cstdint>
#include <span>
#include <vector>

#include "annulus/ring.h"
#include "pattern/interval.h"

namespace annulus::ring {

// If a need has more pieces than this, its smallest gaps are closed. Rows in a closed gap travel
// although their receiver does not see them, and they are counted.
constexpr std::size_t kMaxPieces = 2048;

// The rows of one owner's shard that a rank needs.
struct Need {
  int owner = 0;
  pattern::IntervalSet rows;  // row numbers in the owner's shard; never empty
  std::int64_t unneeded = 0;  // rows in closed gaps
  friend bool operator==(const Need&, const Need&) = default;
};

// The needs of all ranks. The needs of a rank are sorted by owner. They include only owners of keys
// that the rank sees, possibly the rank itself.
class Needs {
 public:
  Needs() : Needs(0) {}
  explicit Needs(int ranks, int branches = 1)
      : branches_(branches),
        all_(static_cast<std::size_t>(ranks)),
        by_branch_(branches > 1 ? static_cast<std::size_t>(ranks * branches) : 0) {}

  int ranks() const { return static_cast<int>(all_.size()); }
  // the number of branches of the pattern's sum; 1 if it is not a sum
  int branches() const { return branches_; }

  // The rows that `rank` sees through any branch, and through one branch alone.
  std::span<const Need> of(int rank) const { return all_[static_cast<std::size_t>(rank)]; }
  std::span<const Need> of(int rank, int branch) const {
    return branches_ == 1 ? of(rank) : by_branch_[index(rank, branch)];
  }
  // The need for one owner's rows. Null if the rank sees none of them.
  const Need* find(int rank, int owner) const { return find_in(of(rank), owner); }
  const Need* find(int rank, int owner, int branch) const {
    return find_in(of(rank, branch), owner);
  }

  bool at(int rank, int owner) const { return find(rank, owner) != nullptr; }
  bool at(int rank, int owner, int branch) const { return find(rank, owner, branch) != nullptr; }

  // Replaces the needs of a rank. Requires: they are sorted by owner.
  void set(int rank, std::vector<Need> needs) {
    all_[static_cast<std::size_t>(rank)] = std::move(needs);
  }
  // Requires: more than one branch.
  void set(int rank, int branch, std::vector<Need> needs) {
    by_branch_[index(rank, branch)] = std::move(needs);
  }

 private:
  std::size_t index(int rank, int branch) const {
    return static_cast<std::size_t>(rank) * static_cast<std::size_t>(branches_) +
           static_cast<std::size_t>(branch);
  }
  static const Need* find_in(std::span<const Need> needs, int owner);

  int branches_;
  std::vector<std::vector<Need>> all_;        // [rank]
  std::vector<std::vector<Need>> by_branch_;  // [rank * branches + branch], empty with one branch
};

// Requires: validate(shards, problem) passes.
Needs find_needs(const Problem& problem, const ShardMap& shards);

}  // namespace annulus::ring

#endif  // ANNULUS_RING_NEEDS_H_
