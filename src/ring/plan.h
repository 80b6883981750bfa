#ifndef ANNULUS_RING_PLAN_H_
#define ANNULUS_RING_PLAN_H_

// Everything that is decided about a ring without touching a device: the schedule, each rank's
// launches and the memory it needs.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "attention/plan/plan.h"
#include "ring/schedule.h"

namespace annulus::ring {

// The scratch memory of one rank: byte offsets, or kAbsent where it needs no such part.
struct Workspace {
  static constexpr std::int64_t kAbsent = -1;
  std::int64_t acc = kAbsent;  // the state that is carried from launch to launch
  std::int64_t m = kAbsent;
  std::int64_t l = kAbsent;
  std::int64_t buffer[2] = {kAbsent, kAbsent};
  std::int64_t launch = kAbsent;  // what a launch needs for itself; they follow one another
  std::int64_t bytes = 0;
};

// A shard of K and V packed in one buffer: K [B, S, Hkv, Dqk], then V [B, S, Hkv, Dv].
struct PackedShard {
  std::int64_t value_offset = 0;  // bytes
  std::int64_t bytes = 0;
  Strides k_strides;
  Strides v_strides;
};
PackedShard packed_shard(const Problem& problem, std::int64_t rows);

struct RankPlan {
  Problem problem;                              // the shapes of its own tensors
  std::vector<attention::LaunchPlan> launches;  // one for each kCompute op, in their order
  Workspace workspace;
};

struct PlannedRing {
  Problem problem;
  ShardMap shards;
  attention::Choice choice;  // runs in every launch
  std::string kernel;        // the name of the kernel that the choice's configuration runs
  Schedule schedule;
  std::vector<PackedShard> packed;  // [rank]: its own shard
  std::vector<RankPlan> ranks;
};

// A problem with the most rows of Q and the most rows of K that any rank has, for which the
// configuration is chosen.
Problem largest_hop(const Problem& problem, const ShardMap& shards);

// How many rows of queries or of keys a rank has: `shards` are those of the one or the other.
std::int64_t rows_of_rank(const std::vector<std::vector<Segment>>& shards, int rank);

// The segments of all launches of a ring.
attention::Segments segments_of(const ShardMap& shards);

// All launches of all ranks run one configuration, because the order of the sums, and with it the
// bits, depends on it. Where the tiles of some launch forbid the first choice, all launches run the
// second one. Requires: validate(problem), validate(shards, problem) pass, nothing is carried;
// limits has one entry for each rank. Throws Error{kUnsupported} where a rank's device cannot run
// the configuration, naming the rank.
PlannedRing plan_ring(const Problem& problem, const ShardMap& shards,
                      std::span<const attention::DeviceLimits> limits,
                      const attention::Choice& choice);

}  // namespace annulus::ring

#endif  // ANNULUS_RING_PLAN_H_
