#ifndef ANNULUS_RING_PLAN_H_
#define ANNULUS_RING_PLAN_H_

// Plans a ring without using a device. A World has all that the ranks must agree on: the rows that
// each rank needs, and the rounds in which rows travel. From a World the launches and the memory of
// each rank are planned separately.

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

// Requires: validate(problem) and validate(shards, problem) pass, and the problem carries no state.
World plan_world(const Problem& problem, const ShardMap& shards, Route route);

// The scratch memory of one rank, as byte offsets. An offset is kAbsent if the rank does not need
// that part.
struct Workspace {
  static constexpr std::int64_t kAbsent = -1;
  std::int64_t acc = kAbsent;  // the state that is carried from launch to launch
  std::int64_t m = kAbsent;
  std::int64_t l = kAbsent;
  std::int64_t packed = kAbsent;              // the rank's own rows that others need
  std::int64_t slot[2] = {kAbsent, kAbsent};  // the rows that arrive, in alternating slots
  std::int64_t launch = kAbsent;  // scratch memory of one launch; all launches use it in turn
  std::int64_t bytes = 0;
};

// The form in which rows of K and V travel: [rows][B][K of all heads | V of all heads]. So any
// interval of rows is one message, and consecutive rows of several owners form one K and one V.
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
  PackedRows packed;  // the rank's own rows that others need
  PackedForm form;
  std::vector<attention::LaunchPlan> launches;  // one for each kCompute op, in their order
  Workspace workspace;
};

struct PlannedRing {
  World world;
  attention::Choice choice;  // the configuration that every launch runs
  std::string kernel;        // the name of the kernel of the choice's configuration
  std::vector<RankPlan> ranks;
};

// The kernel that the launches of these ranks run. If the ranks launch nothing, the kernel that a
// launch with the largest shards would run.
std::string kernel_of(const World& world, const attention::Choice& choice,
                      std::span<const RankPlan> ranks, jit::Arch arch);

// The schedules of all ranks together.
Schedule schedule_of(const PlannedRing& ring);

// A problem whose numbers of rows of Q and of K are the largest of any rank. The configuration is
// chosen for it.
Problem largest_hop(const Problem& problem, const ShardMap& shards);

// The problem of largest_hop(). If there are several ranks, it carries a state in and out. The
// tuned result of this problem is used for the ring.
Problem tuned_step(const Problem& problem, const ShardMap& shards);

// The number of rows of a rank. `shards` are the shards of Q or the shards of K.
std::int64_t rows_of_rank(const std::vector<std::vector<Segment>>& shards, int rank);

// The segments of all launches of all ranks.
attention::Segments segments_of(const World& world);

// The positions of a rank's queries, and of the keys of the launches of a round, in the order of
// the rows. The round kOwnKeys means the rank's own keys.
pattern::Placement placement_of(const World& world, int rank, int round);

// The plan of one rank. The launches run the choice's first configuration. If the tiles of a launch
// do not allow it, they run the second one, and all ranks have to be planned with the second one.
// The same arguments give the same plan on every machine.
RankPlan plan_rank(const World& world, int rank, const attention::DeviceLimits& limits,
                   const attention::Choice& choice);
RankPlan plan_rank(int rank, const Problem& problem, const ShardMap& shards, Route route,
                   const attention::DeviceLimits& limits, const attention::Choice& choice);

// The plans of all ranks. All launches of all ranks run one configuration, because the order of the
// sums, and so every bit of the result, depends on it. If the tiles of a launch do not allow the
// first choice, all launches run the second one. Requires: limits has one entry for each rank.
// Throws Error{kUnsupported} with the rank if a rank's device cannot run the configuration.
PlannedRing plan_ring(World world, std::span<const attention::DeviceLimits> limits,
                      const attention::Choice& choice);

}  // namespace annulus::ring

#endif  // ANNULUS_RING_PLAN_H_
