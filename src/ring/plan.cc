#include "ring/plan.h"

#include <algorithm>
#include <utility>

#include "attention/kernels/withheld.h"
#include "base/fail.h"
#include "base/math.h"
#include "base/work.h"
#include "pattern/node.h"
#include "ring/rank_error.h"

namespace annulus::ring {
namespace {

constexpr std::int64_t kAlignment = 256;
constexpr std::int64_t kElementBytes = 2;

std::int64_t rows_of(const std::vector<std::vector<Segment>>& shards, int rank) {
  return pattern::total_length(shards[static_cast<std::size_t>(rank)]);
}

std::int64_t max_rows(const std::vector<std::vector<Segment>>& shards) {
  std::int64_t most = 0;
  for (const auto& shard : shards) most = std::max(most, pattern::total_length(shard));
  return most;
}

// Appends the positions of rows of a shard. The sequence begins at position `first`. Rows whose
// positions continue the last segment extend it.
void add_positions(const std::vector<Segment>& shard, std::int64_t first,
                   const pattern::Interval& rows, std::vector<Segment>* positions) {
  std::int64_t row = 0;
  for (const Segment& segment : shard) {
    const pattern::Interval part = pattern::intersection(rows, {row, row + segment.length});
    if (!part.empty()) {
      const std::int64_t start = first + segment.start + part.begin - row;
      if (!positions->empty() && positions->back().start + positions->back().length == start) {
        positions->back().length += part.size();
      } else {
        positions->push_back({start, part.size()});
      }
    }
    row += segment.length;
  }
}

// The positions of all rows of a shard. Segments are not empty, because kernels read positions row
// by row if there is a second segment. Only if the shard has no rows, the result has one empty
// segment, because its start becomes q0 or k0 of the launch.
std::vector<Segment> all_positions(const std::vector<Segment>& shard, std::int64_t first) {
  std::vector<Segment> positions;
  add_positions(shard, first, {0, pattern::total_length(shard)}, &positions);
  if (positions.empty()) positions.push_back({first, 0});
  return positions;
}

// The positions of the keys that arrive at a rank in a round. Empty if nothing arrives.
std::vector<Segment> arriving_positions(const World& world, int rank, int round) {
  std::vector<Segment> positions;
  const auto& messages = world.rounds.rounds[static_cast<std::size_t>(round)];
  base::charge(8);
  for (const Message& message : std::ranges::equal_range(messages, rank, {}, &Message::to)) {
    const auto owner = static_cast<std::size_t>(message.owner);
    world.rounds.packed[owner].each_piece(
        {message.first, message.first + message.rows}, [&](const pattern::Interval& rows) {
          add_positions(world.shards.k[owner], world.problem.k_position(), rows, &positions);
        });
  }
  return positions;
}

// The problem of a launch. Values of the whole problem that a pattern or a score may use (total_k,
// the positions) are set here, because their defaults would be derived from the rows of the launch.
Problem local_problem(const Problem& whole, const pattern::Placement& placement) {
  Problem problem = whole;
  problem.seq_q = pattern::total_length(placement.q);
  problem.seq_k = pattern::total_length(placement.k);
  problem.score.scale = whole.effective_scale();
  problem.q0 = placement.q.front().start;
  problem.k0 = placement.k.front().start;
  problem.total_k = placement.context.seq_k;
  return problem;
}

// Throws if a rank cannot run the configuration, or if the configuration is withheld there and the
// caller did not request it.
void require_possible(const attention::Choice& choice, const Problem& problem,
                      std::span<const attention::DeviceLimits> limits) {
  const attention::KernelConfig& config = choice.config;
  const attention::Dims dims = {problem.dim_qk, problem.dim_v};
  for (std::size_t rank = 0; rank < limits.size(); ++rank) {
    auto reason = attention::why_not(config, problem.dtype);
    if (!reason) reason = attention::why_not(config, dims, limits[rank]);
    if (!reason && !choice.named) reason = attention::why_withheld(config, dims, limits[rank]);
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

Workspace lay_out(const RankPlan& plan) {
  Workspace workspace;
  const auto take = [&](std::int64_t bytes) {
    const std::int64_t at = workspace.bytes;
    workspace.bytes += base::round_up(bytes, kAlignment);
    return at;
  };
  const Problem& local = plan.problem;
  if (plan.schedule.launches() > 1) {
    const std::int64_t rows = local.batch * local.heads * local.seq_q;
    workspace.acc = take(rows * local.dim_v * 4);
    workspace.m = take(rows * 4);
    workspace.l = take(rows * 4);
  }
  const std::int64_t row_bytes = plan.form.row_bytes;
  if (plan.packed.count() > 0) workspace.packed = take(plan.packed.count() * row_bytes);
  for (const std::size_t slot : {std::size_t{0}, std::size_t{1}}) {
    const std::int64_t rows = plan.schedule.slot_rows[slot];
    if (rows > 0) workspace.slot[slot] = take(rows * row_bytes);
  }
  std::int64_t of_launch = 0;
  for (const attention::LaunchPlan& launch : plan.launches) {
    of_launch = std::max(of_launch, launch.workspace_bytes);
  }
  if (of_launch > 0) workspace.launch = take(of_launch);
  return workspace;
}

// Lets launches with equal lists share one list. In a ring most launches of a rank see all of their
// keys, and the memory for lists must not grow with the number of rounds.
void share_lists(std::vector<attention::LaunchPlan>* launches) {
  std::vector<std::shared_ptr<const attention::TileList>> distinct;
  for (attention::LaunchPlan& launch : *launches) {
    const auto same = std::ranges::find_if(
        distinct, [&](const auto& other) { return attention::same_tiles(*other, *launch.tiles); });
    if (same == distinct.end()) {
      distinct.push_back(launch.tiles);
    } else {
      launch.tiles = *same;
    }
  }
}

std::vector<RankPlan> plan_ranks(const World& world,
                                 std::span<const attention::DeviceLimits> limits,
                                 const attention::Choice& choice) {
  std::vector<RankPlan> plans;
  for (int rank = 0; rank < world.ranks(); ++rank) {
    plans.push_back(of_rank(rank, [&] {
      return plan_rank(world, rank, limits[static_cast<std::size_t>(rank)], choice);
    }));
  }
  return plans;
}

// The first launch whose configuration differs from the ring's choice, or null.
const attention::LaunchPlan* odd_launch(const PlannedRing& ring) {
  for (const RankPlan& rank : ring.ranks) {
    for (const attention::LaunchPlan& launch : rank.launches) {
      if (!(launch.config == ring.choice.config)) return &launch;
    }
  }
  return nullptr;
}

}  // namespace

std::string kernel_of(const World& world, const attention::Choice& choice,
                      std::span<const RankPlan> ranks, jit::Arch arch) {
  for (const RankPlan& rank : ranks) {
    if (!rank.launches.empty()) return rank.launches.front().spec.family;
  }
  Problem branch = largest_hop(world.problem, world.shards);
  branch.pattern = branch.pattern.branches().front();
  return attention::kernel_spec(choice.config, attention::features_of(branch), arch).family;
}

World plan_world(const Problem& problem, const ShardMap& shards, Route route) {
  std::vector<std::int64_t> rows;
  for (int rank = 0; rank < shards.ranks(); ++rank) rows.push_back(rows_of(shards.k, rank));
  World world = {problem, shards, find_needs(problem, shards), {}};
  world.rounds = make_rounds(world.needs, rows, route);
  return world;
}

PackedForm packed_form(const Problem& problem) {
  const std::int64_t width = problem.kv_heads * (problem.dim_qk + problem.dim_v);
  const std::int64_t row = problem.batch * width;
  return {.row_bytes = row * kElementBytes,
          .value_offset = problem.kv_heads * problem.dim_qk * kElementBytes,
          .k_strides = {.batch = width, .head = problem.dim_qk, .row = row},
          .v_strides = {.batch = width, .head = problem.dim_v, .row = row}};
}

Schedule schedule_of(const PlannedRing& ring) {
  Schedule schedule;
  schedule.rounds = static_cast<int>(ring.world.rounds.rounds.size());
  for (const RankPlan& rank : ring.ranks) {
    schedule.packed.push_back(rank.packed);
    schedule.ranks.push_back(rank.schedule);
  }
  return schedule;
}

Problem largest_hop(const Problem& problem, const ShardMap& shards) {
  Problem largest = problem;
  largest.seq_q = max_rows(shards.q);
  largest.seq_k = max_rows(shards.k);
  // A layout uses the positions of the whole problem, so the first query keeps its position.
  const bool placed = pattern::any_leaf(problem.pattern.node(),
                                        [](const auto& leaf) { return leaf.layout != nullptr; });
  if (placed) largest.q0 = problem.q_position();
  return largest;
}

Problem tuned_step(const Problem& problem, const ShardMap& shards) {
  Problem step = largest_hop(problem, shards);
  if (shards.ranks() == 1) return step;
  step.carry_in = step.carry_out = true;
  step.want_lse = false;
  return step;
}

std::int64_t rows_of_rank(const std::vector<std::vector<Segment>>& shards, int rank) {
  return rows_of(shards, rank);
}

attention::Segments segments_of(const World& world) {
  attention::Segments segments;
  for (int rank = 0; rank < world.ranks(); ++rank) {
    const pattern::Placement own = placement_of(world, rank, kOwnKeys);
    segments.add_q(own.q);
    segments.add_k(own.k);
  }
  for (std::size_t round = 0; round < world.rounds.rounds.size(); ++round) {
    int last = kNone;
    for (const Message& message : world.rounds.rounds[round]) {
      if (message.to != last) {
        segments.add_k(arriving_positions(world, message.to, static_cast<int>(round)));
      }
      last = message.to;
    }
  }
  return segments;
}

pattern::Placement placement_of(const World& world, int rank, int round) {
  const auto at = static_cast<std::size_t>(rank);
  const Problem& problem = world.problem;
  return {all_positions(world.shards.q[at], problem.q_position()),
          round == kOwnKeys ? all_positions(world.shards.k[at], problem.k_position())
                            : arriving_positions(world, rank, round),
          problem.context()};
}

RankPlan plan_rank(const World& world, int rank, const attention::DeviceLimits& limits,
                   const attention::Choice& choice) {
  const Problem& whole = world.problem;
  const std::vector<Pattern> branches = whole.pattern.branches();
  const bool has_rows = whole.batch > 0 && rows_of(world.shards.q, rank) > 0;
  RankPlan plan;
  plan.rank = rank;
  plan.problem = local_problem(whole, placement_of(world, rank, kOwnKeys));
  plan.schedule = make_schedule(world.needs, world.rounds, rank, has_rows);
  plan.packed = world.rounds.packed[static_cast<std::size_t>(rank)];
  plan.form = packed_form(whole);
  for (const Op& op : plan.schedule.ops) {
    if (op.kind != Op::Kind::kCompute) continue;
    const pattern::Placement placement = placement_of(world, rank, op.round);
    Problem launch = local_problem(whole, placement);
    launch.pattern = branches[static_cast<std::size_t>(op.branch)];
    launch.carry_in = !op.first;
    launch.carry_out = !op.last;
    launch.want_lse = whole.want_lse && op.last;
    plan.launches.push_back(attention::make_plan(launch, placement, choice, limits,
                                                 {.dealt = attention::Dealt::kAsPays}));
  }
  share_lists(&plan.launches);
  plan.workspace = lay_out(plan);
  return plan;
}

RankPlan plan_rank(int rank, const Problem& problem, const ShardMap& shards, Route route,
                   const attention::DeviceLimits& limits, const attention::Choice& choice) {
  return plan_rank(plan_world(problem, shards, route), rank, limits, choice);
}

PlannedRing plan_ring(World world, std::span<const attention::DeviceLimits> limits,
                      const attention::Choice& choice) {
  require_possible(choice, world.problem, limits);
  PlannedRing ring;
  ring.world = std::move(world);
  ring.choice = choice;
  ring.ranks = plan_ranks(ring.world, limits, ring.choice);
  // The first choice was made for the largest hop, but the tiles of another launch may not allow
  // it. Then all launches take the second choice, which all tiles allow.
  if (const attention::LaunchPlan* odd = odd_launch(ring)) {
    ring.choice = {odd->config, odd->reason, odd->rejected};
    require_possible(ring.choice, ring.world.problem, limits);
    ring.ranks = plan_ranks(ring.world, limits, ring.choice);
  }
  ring.kernel = kernel_of(ring.world, ring.choice, ring.ranks, limits[0].arch);
  return ring;
}

}  // namespace annulus::ring
