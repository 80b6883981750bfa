#include "ring/needs.h"

#include <algorithm>

#include "pattern/batches.h"
#include "pattern/evaluate.h"

namespace annulus::ring {
namespace {

using pattern::Interval;
using pattern::IntervalSet;

// How many queries are asked about at once: more save calls, fewer leave less doubt.
constexpr std::int64_t kRowsTogether = 128;

// Keys at positions [keys.begin, keys.end) belong to `owner`.
struct OwnedKeys {
  Interval keys;
  int owner = 0;
};

std::vector<OwnedKeys> owned_keys(const Problem& problem, const ShardMap& shards) {
  std::vector<OwnedKeys> all;
  for (int owner = 0; owner < shards.ranks(); ++owner) {
    for (const Segment& segment : shards.k[static_cast<std::size_t>(owner)]) {
      const std::int64_t first = problem.k_position() + segment.start;
      if (segment.length > 0) all.push_back({{first, first + segment.length}, owner});
    }
  }
  std::sort(all.begin(), all.end(),
            [](const OwnedKeys& a, const OwnedKeys& b) { return a.keys.begin < b.keys.begin; });
  return all;
}

// Marks the shards that ranks need through one branch of the pattern.
class Search {
 public:
  Search(const Problem& problem, const Pattern& pattern, int branch, const ShardMap& shards,
         Needs* needs)
      : problem_(problem),
        pattern_(pattern),
        branch_(branch),
        owned_(owned_keys(problem, shards)),
        evaluator_(pattern, problem.context()),
        needs_(*needs) {
    for (const OwnedKeys& keys : owned_) {
      if (owners_.empty() || std::find(owners_.begin(), owners_.end(), keys.owner) == owners_.end())
        owners_.push_back(keys.owner);
    }
  }

  void look(int rank, const Segment& rows) {
    const std::int64_t first = problem_.q_position() + rows.start;
    const Interval universe = {problem_.k_position(), problem_.k_position() + problem_.seq_k};
    const std::int64_t heads = pattern_.distinct_heads(problem_.heads);
    for (std::int64_t head = 0; head < heads; ++head) {
      for (std::int64_t q = first; q < first + rows.length; q += kRowsTogether) {
        if (found_all(rank)) return;
        const Interval queries = {q, std::min(q + kRowsTogether, first + rows.length)};
        const pattern::Bounds& bounds = evaluator_.range(head, queries, universe);
        pattern::subtract(bounds.any, bounds.doubt, &certain_);
        mark(rank, certain_);
        // Keys in doubt are asked row by row, if they can still add an owner.
        doubt_ = bounds.doubt;
        if (doubt_.empty() || !adds(rank, doubt_)) continue;
        for (std::int64_t row = queries.begin; row < queries.end; ++row) {
          pattern::intersect(evaluator_.row(head, row, universe), doubt_, &seen_);
          mark(rank, seen_);
        }
      }
    }
  }

 private:
  bool found_all(int rank) const {
    return std::all_of(owners_.begin(), owners_.end(),
                       [&](int owner) { return needs_.at(rank, owner, branch_); });
  }

  // Calls f(owner) for the owners of the keys in the set, until it says to stop.
  template <typename F>
  void each_owner(const IntervalSet& keys, F f) const {
    for (const Interval& interval : keys) {
      auto at = std::partition_point(owned_.begin(), owned_.end(), [&](const OwnedKeys& owned) {
        return owned.keys.end <= interval.begin;
      });
      for (; at != owned_.end() && at->keys.begin < interval.end; ++at) {
        if (!f(at->owner)) return;
      }
    }
  }
  void mark(int rank, const IntervalSet& keys) {
    each_owner(keys, [&](int owner) {
      needs_.set(rank, owner, true, branch_);
      return true;
    });
  }
  bool adds(int rank, const IntervalSet& keys) const {
    bool adds = false;
    each_owner(keys, [&](int owner) {
      adds = !needs_.at(rank, owner, branch_);
      return !adds;
    });
    return adds;
  }

  const Problem& problem_;
  const Pattern& pattern_;  // what some batches see of branch `branch_` of the problem's pattern
  const int branch_;
  std::vector<OwnedKeys> owned_;
  std::vector<int> owners_;
  pattern::Evaluator evaluator_;
  Needs& needs_;
  IntervalSet certain_, doubt_, seen_;
};

// Segments at their positions. Empty ones are dropped, since a second segment makes kernels read
// positions row by row; one stays, since its start becomes q0 or k0 of the launch.
std::vector<Segment> at_positions(const std::vector<Segment>& segments, std::int64_t first) {
  std::vector<Segment> placed;
  for (const Segment& segment : segments) {
    if (segment.length > 0) placed.push_back({first + segment.start, segment.length});
  }
  if (placed.empty()) placed.push_back({first, 0});
  return placed;
}

}  // namespace

Needs find_needs(const Problem& problem, const ShardMap& shards) {
  const std::vector<Pattern> branches = problem.pattern.branches();
  Needs needs(shards.ranks(), static_cast<int>(branches.size()));
  for (int branch = 0; branch < needs.branches(); ++branch) {
    // A shard travels for all batches together: one that sees it is enough.
    const pattern::BatchPatterns seen =
        pattern::batch_patterns(branches[static_cast<std::size_t>(branch)], problem.batch);
    for (const Pattern& pattern : seen.patterns) {
      Search search(problem, pattern, branch, shards, &needs);
      for (int rank = 0; rank < shards.ranks(); ++rank) {
        for (const Segment& rows : shards.q[static_cast<std::size_t>(rank)]) {
          search.look(rank, rows);
        }
      }
    }
  }
  return needs;
}

pattern::Placement placement_of(const Problem& problem, const ShardMap& shards, int rank,
                                int owner) {
  return {at_positions(shards.q[static_cast<std::size_t>(rank)], problem.q_position()),
          at_positions(shards.k[static_cast<std::size_t>(owner)], problem.k_position()),
          problem.context()};
}

}  // namespace annulus::ring
