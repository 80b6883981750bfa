// The launches of planned rings, checked tile by tile without a device.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "ring/check_schedule.h"
#include "ring/check_tiles.h"
#include "ring/needs.h"
#include "support/options.h"
#include "support/ring_case.h"

namespace annulus::ring {
namespace {

PlannedRing plan_of(const Problem& problem, const ShardMap& shards, Route route = Route::kAuto) {
  const attention::DeviceLimits limits = {jit::parse_arch("sm_80"), 108, 166912};
  const World world = plan_world(problem, shards, route);
  const attention::Choice choice = attention::choose_config(largest_hop(problem, shards), limits,
                                                            std::nullopt, segments_of(world));
  return plan_ring(
      world, std::vector<attention::DeviceLimits>(static_cast<std::size_t>(shards.ranks()), limits),
      choice);
}

bool has(const std::vector<Violation>& violations, Violation::Kind kind) {
  return std::any_of(violations.begin(), violations.end(),
                     [&](const Violation& violation) { return violation.kind == kind; });
}

TEST_CASE("launches of random worlds compute every visible tile once") {
  base::Random random(test::seed_of(71));
  for (int i = 0; i < 60; ++i) {
    const test::Case c = test::random_ring_case(72, static_cast<std::uint64_t>(i));
    const int ranks = 1 + static_cast<int>(random.below(7));
    const ShardMap shards = test::random_shards(random, ranks, c.problem.seq_q, c.problem.seq_k);
    const Route route = static_cast<Route>(i % 3);
    for (const Violation& violation : check_tiles(plan_of(c.problem, shards, route))) {
      FAIL_CHECK(c.text << "\n  " << to_string(violation.kind) << ": " << violation.text);
    }
  }
}

// The tile rows of a segment of 512 positions see the same keys. The tile rows of a pair of
// segments from 384 on do not.
TEST_CASE("all launches of a ring run one configuration, where tiles of one forbid the first") {
  const attention::DeviceLimits limits = {jit::parse_arch("sm_90a"), 132, 232448};
  const std::vector<attention::DeviceLimits> both = {limits, limits};
  Problem problem;
  problem.seq_q = problem.seq_k = 1024;
  problem.dim_qk = problem.dim_v = 128;
  problem.pattern = segment(512, 1);
  ShardMap shards = {{{{0, 512}}, {{512, 512}}}, {{{0, 512}}, {{512, 512}}}};
  attention::Choice choice = {*attention::parse_config("wgmma m128 n128 w8 s2 c2"), "a test", {}};
  choice.second = attention::parse_config("wgmma m64 n64 w4 s2 b2");
  const auto configs_of = [&](const PlannedRing& ring) {
    std::vector<std::string> configs;
    for (const RankPlan& rank : ring.ranks) {
      for (const attention::LaunchPlan& launch : rank.launches) {
        configs.push_back(attention::to_string(launch.config));
      }
    }
    return configs;
  };
  const PlannedRing aligned = plan_ring(plan_world(problem, shards, Route::kAuto), both, choice);
  CHECK(check_tiles(aligned).empty());
  CHECK(aligned.choice.config == choice.config);
  REQUIRE(configs_of(aligned).size() == 2);

  shards = {{{{0, 384}}, {{384, 640}}}, {{{0, 512}}, {{512, 512}}}};
  const PlannedRing ring = plan_ring(plan_world(problem, shards, Route::kAuto), both, choice);
  for (const Violation& violation : check_tiles(ring)) FAIL_CHECK(violation.text);
  CHECK(ring.choice.config == *choice.second);
  CHECK(ring.choice.reason.starts_with("the second choice: "));
  REQUIRE(!ring.choice.rejected.empty());
  CHECK(ring.choice.rejected.front().config == choice.config);
  const std::vector<std::string> configs = configs_of(ring);
  CHECK(configs.size() == 3);
  CHECK(std::ranges::count(configs, attention::to_string(*choice.second)) == 3);

  PlannedRing broken = ring;
  broken.ranks[1].launches[0].config = choice.config;
  CHECK(has(check_tiles(broken), Violation::Kind::kIllFormed));

  // The heuristic chooses such a configuration, because it uses the rows of the largest hop and
  // ignores the beginnings of the other segments.
  problem.dim_qk = 192;
  problem.seq_q = problem.seq_k = 1152;
  problem.heads = problem.kv_heads = 32;
  shards = {{{{0, 128}}, {{128, 1024}}}, {{{0, 128}}, {{128, 1024}}}};
  const World world = plan_world(problem, shards, Route::kAuto);
  const attention::Choice chosen = attention::choose_config(largest_hop(problem, shards), limits,
                                                            std::nullopt, segments_of(world));
  REQUIRE(chosen.second);
  CHECK(attention::to_string(chosen.config) == "wgmma m128 n128 w8 s2 c2");
  CHECK(plan_ring(world, both, chosen).choice.config == *chosen.second);

  choice.second = std::nullopt;
  CHECK_THROWS_AS(plan_ring(plan_world(problem, shards, Route::kAuto), both, choice), Error);
}

TEST_CASE("the tiles of a zigzag ring begin anew with the second segment") {
  const attention::DeviceLimits limits = {jit::parse_arch("sm_90a"), 132, 232448};
  const std::vector<attention::DeviceLimits> all(3, limits);
  Problem problem;
  problem.seq_q = problem.seq_k = 2300;
  problem.heads = 2;
  problem.dim_qk = problem.dim_v = 128;
  problem.pattern = causal();
  const ShardMap shards = make_shards(Sharding::kZigzag, 3, 2300, 2300, 64);
  const auto plan = [&](const char* config) {
    return plan_ring(plan_world(problem, shards, Route::kAuto), all,
                     {*attention::parse_config(config), "a test", {}});
  };
  for (const char* config : {"wgmma m192 n80 w12 s2", "wgmma m128 n176 w8 s2 c2",
                             "wgmma m128 n128 w8 s2", "mma m64 n64 w4 s2"}) {
    CAPTURE(config);
    const PlannedRing ring = plan(config);
    for (const Violation& violation : check_tiles(ring)) FAIL_CHECK(violation.text);
    for (const RankPlan& rank : ring.ranks) {
      for (const attention::LaunchPlan& launch : rank.launches) {
        // The pieces of the last rank are adjacent, so they are one segment.
        const bool one = launch.placement.q.size() == 1 && launch.placement.k.size() == 1;
        CHECK(launch.features.positions ==
              (one ? kernels::Positions::kOneSegment : kernels::Positions::kTwoSegments));
        CHECK(launch.tiles->tile_order ==
              (one ? kernels::TileOrder::kBand : kernels::TileOrder::kRuns));
        CHECK(launch.q_positions.empty());
      }
    }
  }
  // One launch keeps its tiles but loses the second segment. Its tiles are then taken for tiles of
  // all rows.
  PlannedRing broken = plan("wgmma m192 n80 w12 s2");
  for (RankPlan& rank : broken.ranks) {
    for (attention::LaunchPlan& launch : rank.launches) {
      launch.features.positions = kernels::Positions::kOfRows;
    }
  }
  CHECK_FALSE(check_tiles(broken).empty());
}

TEST_CASE("shards travel where any batch needs them, and each batch has its own tiles") {
  base::Random random(test::seed_of(73));
  for (int i = 0; i < 30; ++i) {
    Problem problem = test::random_ring_case(74, static_cast<std::uint64_t>(i)).problem;
    if (problem.pattern.branches().size() > 1) continue;
    problem.batch = 1 + random.below(4);
    problem.pattern =
        batches({problem.pattern, causal() & window(random.below(90), 0), documents({50, 120})});
    const int ranks = 1 + static_cast<int>(random.below(5));
    const ShardMap shards = test::random_shards(random, ranks, problem.seq_q, problem.seq_k);
    const PlannedRing ring = plan_of(problem, shards);
    CAPTURE(problem.pattern.to_string());
    CAPTURE(problem.batch);
    for (const Violation& violation : check_tiles(ring)) {
      FAIL_CHECK(to_string(violation.kind) << ": " << violation.text);
    }
    for (const Violation& violation : check_schedule(schedule_of(ring), problem, shards)) {
      FAIL_CHECK(to_string(violation.kind) << ": " << violation.text);
    }
  }
  // The second batch needs tiles that the first batch does not need.
  Problem problem;
  problem.batch = 2;
  problem.seq_q = problem.seq_k = 256;
  problem.dim_qk = problem.dim_v = 64;
  problem.pattern = batches({window(0, 0), dense()});
  const ShardMap shards = make_shards(Sharding::kContiguous, 2, 256, 256);
  CHECK(find_needs(problem, shards).at(0, 1));
  problem.batch = 1;
  CHECK_FALSE(find_needs(problem, shards).at(0, 1));
}

TEST_CASE("a rank plans alone what a ring plans for it") {
  base::Random random(test::seed_of(75));
  for (int i = 0; i < 20; ++i) {
    const Problem problem = test::random_ring_case(76, static_cast<std::uint64_t>(i)).problem;
    const int ranks = 1 + static_cast<int>(random.below(6));
    const ShardMap shards = test::random_shards(random, ranks, problem.seq_q, problem.seq_k);
    const Route route = static_cast<Route>(i % 3);
    const PlannedRing ring = plan_of(problem, shards, route);
    CAPTURE(problem.pattern.to_string());
    for (int rank = 0; rank < ranks; ++rank) {
      const RankPlan alone = plan_rank(rank, problem, shards, route,
                                       {jit::parse_arch("sm_80"), 108, 166912}, ring.choice);
      const RankPlan& together = ring.ranks[static_cast<std::size_t>(rank)];
      CHECK(alone.schedule == together.schedule);
      CHECK(alone.packed == together.packed);
      CHECK(alone.workspace.bytes == together.workspace.bytes);
      REQUIRE(alone.launches.size() == together.launches.size());
      for (std::size_t at = 0; at < alone.launches.size(); ++at) {
        const attention::LaunchPlan& launch = alone.launches[at];
        CHECK(launch.config == ring.choice.config);
        CHECK(launch.placement.k == together.launches[at].placement.k);
        CHECK(attention::same_tiles(*launch.tiles, *together.launches[at].tiles));
      }
    }
  }
}

TEST_CASE("what a rank keeps of its lists does not grow with the number of ranks") {
  const attention::DeviceLimits limits = {jit::parse_arch("sm_90a"), 132, 232448};
  for (const Pattern& pattern : {causal(), dense()}) {
    for (const int ranks : {4, 16}) {
      Problem problem;
      problem.seq_q = problem.seq_k = 4096 * ranks;
      problem.dim_qk = problem.dim_v = 128;
      problem.pattern = pattern;
      const World world =
          plan_world(problem, make_shards(Sharding::kZigzag, ranks, problem.seq_q, problem.seq_k),
                     Route::kAuto);
      const RankPlan plan =
          plan_rank(world, ranks / 2, limits,
                    attention::choose_config(largest_hop(problem, world.shards), limits,
                                             std::nullopt, segments_of(world)));
      REQUIRE(plan.launches.size() > static_cast<std::size_t>(ranks));
      std::set<const attention::TileList*> lists;
      for (const attention::LaunchPlan& launch : plan.launches) {
        lists.insert(launch.tiles.get());
        CHECK(launch.q_positions.empty());
      }
      CHECK(lists.size() <= 4);
    }
  }
}

TEST_CASE("every mistake in a tile list is found") {
  using Kind = Violation::Kind;
  Problem problem;
  problem.seq_q = problem.seq_k = 600;
  problem.dim_qk = problem.dim_v = 64;
  problem.pattern = causal() & (window(200, 0) | global({0, 3, 15}));
  const PlannedRing good = plan_of(problem, make_shards(Sharding::kZigzag, 3, 600, 600));
  REQUIRE(check_tiles(good).empty());
  const auto plant = [&](auto change) {
    PlannedRing broken = good;
    change(broken);
    return check_tiles(broken);
  };
  for (std::size_t rank = 0; rank < 3; ++rank) {
    CAPTURE(rank);
    for (std::size_t launch = 0; launch < good.ranks[rank].launches.size(); ++launch) {
      CAPTURE(launch);
      const auto tiles_of = [&](PlannedRing& ring) -> attention::TileList& {
        auto own = std::make_shared<attention::TileList>(*ring.ranks[rank].launches[launch].tiles);
        ring.ranks[rank].launches[launch].tiles = own;
        return *own;
      };
      const attention::TileList& tiles = *good.ranks[rank].launches[launch].tiles;
      REQUIRE(tiles.tile_order == kernels::TileOrder::kList);
      for (std::size_t at = 0; at < tiles.tiles.size(); ++at) {
        // A tile at the place of another tile, and a tile whose hidden pairs are not masked.
        CHECK(has(plant([&](PlannedRing& ring) { tiles_of(ring).tiles[at] += 2 * 1000; }),
                  Kind::kPairMissing));
        if (tiles.tiles[at] % 2 == 0) continue;
        CHECK(has(plant([&](PlannedRing& ring) { tiles_of(ring).tiles[at] -= 1; }),
                  Kind::kPairHidden));
      }
      // A state that a launch does not read, or does not write.
      CHECK(has(plant([&](PlannedRing& ring) {
                  bool& carried = ring.ranks[rank].launches[launch].problem.carry_in;
                  carried = !carried;
                }),
                Kind::kState));
    }
    CHECK(has(plant([&](PlannedRing& ring) { ring.ranks[rank].launches.pop_back(); }),
              Kind::kIllFormed));
  }
  // The keys of one shard instead of another shard's, and positions counted from the shard's own
  // start.
  CHECK(has(
      plant([&](PlannedRing& ring) { std::swap(ring.world.shards.k[0], ring.world.shards.k[1]); }),
      Kind::kPairMissing));
  CHECK(has(plant([&](PlannedRing& ring) {
              const pattern::Placement local = {{{0, 200}}, {{0, 200}}};
              for (RankPlan& rank : ring.ranks) {
                for (attention::LaunchPlan& launch : rank.launches) {
                  const bool in = launch.problem.carry_in, out = launch.problem.carry_out;
                  launch = attention::make_plan(launch.problem, local, ring.choice,
                                                {jit::parse_arch("sm_80"), 108, 166912});
                  launch.problem.carry_in = in, launch.problem.carry_out = out;
                }
              }
            }),
            Kind::kPairMissing));
}

}  // namespace
}  // namespace annulus::ring
