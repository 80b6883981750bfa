#include "ring/plan.h"

#include <algorithm>
#include <utility>

#include "base/fail.h"
#include "base/math.h"
#include "ring/rank_error.h"

namespace annulus::ring {
namespace {

constexpr std::int64_t kAlignment = 256;

std::int64_t rows_of(const std::vector<std::vector<Segment>>& shards, int rank) {
  return pattern::total_length(shards[static_cast<std::size_t>(rank)]);
}

std::int64_t max_rows(const std::vector<std::vector<Segment>>& shards) {
  std::int64_t most = 0;
  for (const auto& shard : shards) most = std::max(most, pattern::total_length(shard));
  return most;
}

// The problem of a launch of `rank` with the keys of `owner`. What a pattern or a score may ask of
// the whole (total_k, the positions) is set, since defaults would follow from the shard.
Problem local_problem(const Problem& whole, const ShardMap& shards, int rank, int owner) {
  Problem problem = whole;
  problem.seq_q = rows_of(shards.q, rank);
  problem.seq_k = rows_of(shards.k, owner);
  problem.score.scale = whole.effective_scale();
  const pattern::Placement placement = placement_of(whole, shards, rank, owner);
  problem.q0 = placement.q.front().start;
  problem.k0 = placement.k.front().start;
  problem.total_k = placement.context.seq_k;
  return problem;
}

void require_possible(const attention::KernelConfig& config, const Problem& largest,
                      std::span<const attention::DeviceLimits> limits) {
  const attention::Dims dims = {largest.dim_qk, largest.dim_v};
  for (std::size_t rank = 0; rank < limits.size(); ++rank) {
    auto reason = attention::why_not(config, largest.dtype);
    if (!reason) reason = attention::why_not(config, dims, limits[rank]);
    if (!reason) continue;
    const std::string text = attention::to_string(config);
    if (rank == 0) {
      base::fail(ErrorCode::kUnsupported, "configuration '{}' is not possible here: {}", text,
                 *reason);
    }
    base::fail(ErrorCode::kUnsupported,
               "rank {} cannot run what rank 0 chose: configuration '{}' is not possible here: {}",
               rank, text, *reason);
  }
}

// The kernel that a launch of the ring runs, or that one of the largest shards would run where
// nothing is launched.
std::string kernel_of(const PlannedRing& ring, const Problem& largest, jit::Arch arch) {
  for (const RankPlan& rank : ring.ranks) {
    if (!rank.launches.empty()) return rank.launches.front().spec.family;
  }
  Problem branch = largest;
  branch.pattern = largest.pattern.branches().front();
  return attention::kernel_spec(ring.choice.config, attention::features_of(branch), arch).family;
}

Workspace lay_out(const Problem& local, const Schedule& schedule, int rank,
                  std::span<const attention::LaunchPlan> launches) {
  Workspace workspace;
  const auto take = [&](std::int64_t bytes) {
    const std::int64_t at = workspace.bytes;
    workspace.bytes += base::round_up(bytes, kAlignment);
    return at;
  };
  if (schedule.launches(rank) > 1) {
    const std::int64_t rows = local.batch * local.heads * local.seq_q;
    workspace.acc = take(rows * local.dim_v * 4);
    workspace.m = take(rows * 4);
    workspace.l = take(rows * 4);
  }
  for (const int buffer : {0, 1}) {
    const std::int64_t bytes = schedule.buffer_bytes(rank, buffer);
    if (bytes > 0) workspace.buffer[buffer] = take(bytes);
  }
  std::int64_t of_launch = 0;
  for (const attention::LaunchPlan& launch : launches) {
    of_launch = std::max(of_launch, launch.workspace_bytes);
  }
  if (of_launch > 0) workspace.launch = take(of_launch);
  return workspace;
}

RankPlan plan_rank(const PlannedRing& ring, std::span<const attention::DeviceLimits> limits,
                   int rank) {
  const std::vector<Pattern> branches = ring.problem.pattern.branches();
  RankPlan plan;
  plan.problem = local_problem(ring.problem, ring.shards, rank, rank);
  for (const Op& op : ring.schedule.ops[static_cast<std::size_t>(rank)]) {
    if (op.kind != Op::Kind::kCompute) continue;
    Problem launch = local_problem(ring.problem, ring.shards, rank, op.owner);
    launch.pattern = branches[static_cast<std::size_t>(op.branch)];
    launch.carry_in = !op.first;
    launch.carry_out = !op.last;
    launch.want_lse = ring.problem.want_lse && op.last;
    plan.launches.push_back(attention::make_plan(
        launch, placement_of(ring.problem, ring.shards, rank, op.owner), ring.choice,
        limits[static_cast<std::size_t>(rank)], {.dealt = attention::Dealt::kAsPays}));
  }
  plan.workspace = lay_out(plan.problem, ring.schedule, rank, plan.launches);
  return plan;
}

// Plans the launches of all ranks with the ring's choice, and lays out their workspaces.
std::vector<RankPlan> plan_ranks(const PlannedRing& ring,
                                 std::span<const attention::DeviceLimits> limits) {
  std::vector<RankPlan> plans;
  for (int rank = 0; rank < ring.shards.ranks(); ++rank) {
    plans.push_back(of_rank(rank, [&] { return plan_rank(ring, limits, rank); }));
  }
  return plans;
}

// The first launch that runs another configuration than the ring's choice, or null.
const attention::LaunchPlan* odd_launch(const PlannedRing& ring) {
  for (const RankPlan& rank : ring.ranks) {
    for (const attention::LaunchPlan& launch : rank.launches) {
      if (!(launch.config == ring.choice.config)) return &launch;
    }
  }
  return nullptr;
}

}  // namespace

Problem largest_hop(const Problem& problem, const ShardMap& shards) {
  Problem largest = problem;
  largest.seq_q = max_rows(shards.q);
  largest.seq_k = max_rows(shards.k);
  return largest;
}

std::int64_t rows_of_rank(const std::vector<std::vector<Segment>>& shards, int rank) {
  return rows_of(shards, rank);
}

attention::Segments segments_of(const ShardMap& shards) {
  attention::Segments segments;
  for (int rank = 0; rank < shards.ranks(); ++rank) {
    const pattern::Placement own = placement_of(Problem(), shards, rank, rank);
    segments.add_q(own.q);
    segments.add_k(own.k);
  }
  return segments;
}

PackedShard packed_shard(const Problem& problem, std::int64_t rows) {
  PackedShard packed;
  const std::int64_t lines = problem.batch * rows * problem.kv_heads;
  packed.value_offset = lines * problem.dim_qk * 2;
  packed.bytes = packed.value_offset + lines * problem.dim_v * 2;
  packed.k_strides = Strides::bshd(rows, problem.kv_heads, problem.dim_qk);
  packed.v_strides = Strides::bshd(rows, problem.kv_heads, problem.dim_v);
  return packed;
}

PlannedRing plan_ring(const Problem& problem, const ShardMap& shards,
                      std::span<const attention::DeviceLimits> limits,
                      const attention::Choice& choice) {
  const Problem largest = largest_hop(problem, shards);
  require_possible(choice.config, largest, limits);
  PlannedRing ring;
  ring.problem = problem;
  ring.shards = shards;
  ring.choice = choice;
  const int ranks = shards.ranks();

  std::vector<std::int64_t> rows_q, shard_bytes;
  for (int rank = 0; rank < ranks; ++rank) {
    rows_q.push_back(problem.batch > 0 ? rows_of(shards.q, rank) : 0);
    ring.packed.push_back(packed_shard(problem, rows_of(shards.k, rank)));
    shard_bytes.push_back(ring.packed.back().bytes);
  }
  ring.schedule = make_schedule(find_needs(problem, shards), rows_q, shard_bytes);

  ring.ranks = plan_ranks(ring, limits);
  // The first choice was made for the largest hop, but the tiles of another launch may forbid it.
  // Then all launches take the second choice, which no tiles forbid.
  if (const attention::LaunchPlan* odd = odd_launch(ring)) {
    ring.choice = {odd->config, odd->reason, odd->rejected};
    require_possible(ring.choice.config, largest, limits);
    ring.ranks = plan_ranks(ring, limits);
  }
  ring.kernel = kernel_of(ring, largest, limits[0].arch);
  return ring;
}

}  // namespace annulus::ring
