#include "ring/plan.h"

#include <algorithm>
#include <utility>

#include "base/fail.h"

namespace annulus::ring {
namespace {

constexpr std::int64_t kAlignment = 256;

std::int64_t rows_of(const std::vector<std::vector<Segment>>& shards, int rank) {
  return pattern::total_length(shards[static_cast<std::size_t>(rank)]);
}

std::int64_t most_rows(const std::vector<std::vector<Segment>>& shards) {
  std::int64_t most = 0;
  for (const auto& shard : shards) most = std::max(most, pattern::total_length(shard));
  return most;
}

// The shapes that a rank computes with, where the keys are those of `owner`.
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

attention::Choice choose(const Problem& problem, const ShardMap& shards,
                         std::span<const attention::DeviceLimits> limits,
                         const std::string& config) {
  const Problem largest = largest_hop(problem, shards);
  const auto apart = [](const std::vector<Segment>& shard) { return shard.size() > 1; };
  const bool placed = std::ranges::any_of(shards.q, apart) || std::ranges::any_of(shards.k, apart);
  attention::Choice choice = config.empty()
                                 ? attention::choose_config(largest, limits[0], {}, placed)
                                 : attention::forced_config(largest, limits[0], config);
  // One configuration for all: the order of the sums, and so the bits, come from it.
  for (std::size_t rank = 1; rank < limits.size(); ++rank) {
    try {
      attention::forced_config(largest, limits[rank], attention::to_string(choice.config));
    } catch (const Error& error) {
      base::fail(error.code(), "rank {} cannot run what rank 0 chose: {}", rank, error.what());
    }
  }
  return choice;
}

Workspace lay_out(const Problem& local, const Schedule& schedule, int rank) {
  Workspace workspace;
  const auto take = [&](std::int64_t bytes) {
    const std::int64_t at = workspace.bytes;
    workspace.bytes += (bytes + kAlignment - 1) / kAlignment * kAlignment;
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
  return workspace;
}

}  // namespace

Problem largest_hop(const Problem& problem, const ShardMap& shards) {
  Problem largest = problem;
  largest.seq_q = most_rows(shards.q);
  largest.seq_k = most_rows(shards.k);
  return largest;
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
                      std::span<const attention::DeviceLimits> limits, const std::string& config) {
  PlannedRing ring;
  ring.problem = problem;
  ring.shards = shards;
  const int ranks = shards.ranks();
  ring.choice = choose(problem, shards, limits, config);

  std::vector<std::int64_t> rows_q, shard_bytes;
  for (int rank = 0; rank < ranks; ++rank) {
    rows_q.push_back(problem.batch > 0 ? rows_of(shards.q, rank) : 0);
    ring.packed.push_back(packed_shard(problem, rows_of(shards.k, rank)));
    shard_bytes.push_back(ring.packed.back().bytes);
  }
  ring.schedule = make_schedule(find_needs(problem, shards), rows_q, shard_bytes);

  const std::vector<Pattern> branches = problem.pattern.branches();
  for (int rank = 0; rank < ranks; ++rank) {
    RankPlan plan;
    plan.problem = local_problem(problem, shards, rank, rank);
    for (const Op& op : ring.schedule.ops[static_cast<std::size_t>(rank)]) {
      if (op.kind != Op::Kind::kCompute) continue;
      Problem launch = local_problem(problem, shards, rank, op.owner);
      launch.pattern = branches[static_cast<std::size_t>(op.branch)];
      launch.carry_in = !op.first;
      launch.carry_out = !op.last;
      launch.want_lse = problem.want_lse && op.last;
      plan.launches.push_back(
          attention::make_plan(launch, placement_of(problem, shards, rank, op.owner), ring.choice,
                               limits[static_cast<std::size_t>(rank)]));
    }
    plan.workspace = lay_out(plan.problem, ring.schedule, rank);
    ring.ranks.push_back(std::move(plan));
  }
  return ring;
}

}  // namespace annulus::ring
