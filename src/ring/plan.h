#ifndef ANNULUS_RING_PLAN_H_
#define ANNULUS_RING_PLAN_H_

// Everything that is decided about a ring without touching a device. What all ranks have to agree
// on is a World: who needs which rows, and how they travel. With it the launches of a rank and the
// memory that it needs are planned for that rank alone.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "attention/plan/plan.h"
#include "ring/schedule.h"

namespace annulus::ring {

struct World {
  Problem problem;  // the whole problem
  ShardMap shards;
  Needs needs;
  Rounds rounds;

  int ranks() const { return shards.ranks(); }
};

// Requires: validate(problem), validate(shards, problem) pass, nothing is carried.
World plan_world(const Problem& problem, const ShardMap& shards, Route route);

// The scratch memory of one rank: byte offsets, or kAbsent where it needs no such part.
struct Workspace {
  static constexpr std::int64_t kAbsent = -1;
  std::int64_t acc = kAbsent;  // the state that is carried from launch to launch
  std::int64_t m = kAbsent;
  std::int64_t l = kAbsent;
  std::int64_t packed = kAbsent;              // own rows that others need
  std::int64_t slot[2] = {kAbsent, kAbsent};  // what arrives, in turns
  std::int64_t launch = kAbsent;  // what a launch needs for itself; they follow one another
  std::int64_t bytes = 0;
};

// Rows of K and V as they travel: [rows][B][K of all heads | V of all heads]. So any interval of
// rows is one message, and rows of several owners behind one another are one K and one V.
struct PackedForm {
  std::int64_t row_bytes = 0;
  std::int64_t value_offset = 0;  // bytes from a row's first K to its first V
  Strides k_strides;
  Strides v_strides;
};
PackedForm packed_form(const Problem& problem);

struct RankPlan {
  int rank = 0;
  Problem problem;  // the shapes of its own tensors
  RankSchedule schedule;
  PackedRows packed;  // own rows that others need
  PackedForm form;
  std::vector<attention::LaunchPlan> launches;  // one for each kCompute op, in their order
  Workspace workspace;
};

struct PlannedRing {
  World world;
  attention::Choice choice;  // runs in every launch
  std::string kernel;        // the name of the kernel that the choice's configuration runs
  std::vector<RankPlan> ranks;
};

// The kernel that the launches of these ranks run, or that one of the largest shards would run
// where they launch nothing.
std::string kernel_of(const World& world, const attention::Choice& choice,
                      std::span<const RankPlan> ranks, jit::Arch arch);

// The schedules of all ranks together.
Schedule schedule_of(const PlannedRing& ring);

// A problem with the most rows of Q and the most rows of K that any rank has, for which the
// configuration is chosen.
Problem largest_hop(const Problem& problem, const ShardMap& shards);

// That problem with a state carried in and out where there are several ranks: its tuned result is
// the ring's.
Problem tuned_step(const Problem& problem, const ShardMap& shards);

// How many rows of queries or of keys a rank has: `shards` are those of the one or the other.
std::int64_t rows_of_rank(const std::vector<std::vector<Segment>>& shards, int rank);

// The segments of all launches of all ranks.
attention::Segments segments_of(const World& world);

// The positions of the queries of a rank, and of the keys of the launches of a round, kOwnKeys for
// its own; in the order of the rows.
pattern::Placement placement_of(const World& world, int rank, int round);

// The plan of one rank. Launches run the choice's first configuration, or its second one where
// their tiles forbid the first: then all ranks have to be planned with that. The same arguments
// give the same plan on every machine.
RankPlan plan_rank(const World& world, int rank, const attention::DeviceLimits& limits,
                   const attention::Choice& choice);
RankPlan plan_rank(int rank, const Problem& problem, const ShardMap& shards, Route route,
                   const attention::DeviceLimits& limits, const attention::Choice& choice);

// The plans of all ranks. All launches of all ranks run one configuration, because the order of the
// sums, and with it the bits, depends on it. Where the tiles of some launch forbid the first
// choice, all launches run the second one. Requires: limits has one entry for each rank. Throws
// Error{kUnsupported} where a rank's device cannot run the configuration, naming the rank.
PlannedRing plan_ring(World world, std::span<const attention::DeviceLimits> limits,
                      const attention::Choice& choice);

}  // namespace annulus::ring

#endif  // ANNULUS_RING_PLAN_H_
