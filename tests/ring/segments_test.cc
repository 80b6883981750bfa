// Rings whose shards have two segments, with kernels whose tiles begin again at the second segment.

#include <doctest/doctest.h>

#include "api/impl.h"
#include "attention/kernels/family.h"
#include "ring/local_ring.h"
#include "ring/on_ring.h"

namespace annulus {
namespace {

using kernels::Positions;
using test::check;
using test::DeviceAnswer;
using test::devices;
using test::problem_of;
using test::RingMemory;
using test::run_ring;

bool on_hopper() { return devices(1)[0].info().architecture == "sm_90a"; }

struct Ring {
  test::Case c;
  ShardMap shards;
  ring::PlannedRing plan;
  std::vector<ring::RankDevice> devices_of;

  DeviceAnswer run() const {
    const ring::PlannedRing copy = plan;
    const ring::LocalRing local(copy, devices_of);
    RingMemory memory(devices(shards.ranks()), c, shards);
    memory.make_workspace([&](int rank) {
      return static_cast<std::size_t>(copy.ranks[static_cast<std::size_t>(rank)].workspace.bytes);
    });
    local.run(memory.calls());
    return memory.answer();
  }
  template <typename F>
  void each_launch(const F& f) {
    for (ring::RankPlan& rank : plan.ranks) {
      for (attention::LaunchPlan& launch : rank.launches) f(launch);
    }
  }
};

// A ring of two ranks. The edges of its segments are multiples of `multiple` rows.
Ring make_ring(const Problem& problem, std::int64_t multiple, const std::string& config) {
  Ring made{test::make_case(problem, 61), {}, {}, {}};
  made.shards = make_shards(Sharding::kZigzag, 2, problem.seq_q, problem.seq_k, multiple);
  std::vector<attention::DeviceLimits> limits;
  for (const Device& device : devices(2)) {
    const Device::Impl& inside = api::inside(device);
    limits.push_back(api::limits_of(inside));
    made.devices_of.push_back({inside.context, inside.kernels.get(), inside.arch});
  }
  made.plan = ring::plan_ring(ring::plan_world(made.c.problem, made.shards, Route::kAuto), limits,
                              attention::forced_config(problem, limits[0], config));
  return made;
}

// The number of launches with these positions. The pieces of the last rank are adjacent, so they
// are one segment.
std::int64_t launches_with(Ring& ring, Positions positions) {
  std::int64_t launches = 0;
  ring.each_launch([&](const attention::LaunchPlan& launch) {
    launches += launch.features.positions == positions;
  });
  return launches;
}

// The rows and keys do not fill a tile at the end of either segment.
TEST_CASE("segments that are no multiples of a tile, masks and terms of positions") {
  struct World {
    const char* config;
    std::int64_t seq, multiple;
    const char* pattern;
    const char* score;
    // The number of launches that take positions row by row, because their keys have three segments
    // with the global ones, or one segment is shorter than a tile.
    std::int64_t of_rows = 0;
  };
  const World worlds[] = {
      {"mma m128 n64 w8 s2", 597, 50, "causal", ""},
      {"mma m64 n64 w4 s2", 301, 1, "window(90, 20) | global(5)", "alibi([0.2, 0.1])", 1},
      {"mma m64 n64 w4 s1", 303, 1, "documents([0, 70, 200])", "score_mod(score + 0.01 * (k - q))",
       1},
      {"wgmma m192 n128 w12 s2", 1000, 64, "causal", ""},
      {"wgmma m128 n176 w8 s2", 1000, 64, "causal & window(300, 0)", ""},
      {"wgmma m64 n64 w4 s2 b2", 700, 64, "window(90, 20) | global(5)", "alibi([0.2, 0.1])", 1},
  };
  for (const World& world : worlds) {
    if (std::string(world.config).starts_with("wgmma") && !on_hopper()) continue;
    CAPTURE(std::string(world.config));
    CAPTURE(std::string(world.pattern));
    Problem problem = problem_of(world.seq, Pattern::parse(world.pattern));
    if (*world.score != 0) problem.score = Score::parse(world.score);
    Ring ring = make_ring(problem, world.multiple, world.config);
    CHECK(launches_with(ring, Positions::kTwoSegments) >= 1);
    CHECK(launches_with(ring, Positions::kOfRows) == world.of_rows);
    check(ring.c, ring.run());
  }
}

TEST_CASE("positions of two segments give the bits of positions that are read row by row") {
  const Problem problem = problem_of(512, causal() & (window(150, 0) | global(3)));
  Ring ring = make_ring(problem, 128, on_hopper() ? "wgmma m128 n128 w8 s2" : "mma m128 n64 w8 s2");
  CHECK(launches_with(ring, Positions::kTwoSegments) >= 2);
  const DeviceAnswer by_segment = ring.run();
  check(ring.c, by_segment);
  // The edges are multiples of the tiles, so the tiles are the same.
  ring.each_launch([](attention::LaunchPlan& launch) {
    const auto positions_of = [](const std::vector<Segment>& segments) {
      std::vector<std::int32_t> positions;
      for (const Segment& segment : segments) {
        for (std::int64_t i = 0; i < segment.length; ++i) {
          positions.push_back(static_cast<std::int32_t>(segment.start + i));
        }
      }
      return positions;
    };
    if (launch.features.positions == Positions::kOneSegment) return;
    launch.features.positions = Positions::kOfRows;
    launch.q_positions = positions_of(launch.placement.q);
    launch.k_positions = positions_of(launch.placement.k);
    launch.spec =
        attention::kernel_spec(launch.config, launch.features, api::inside(devices(1)[0]).arch);
  });
  CHECK(ring.run() == by_segment);
}

// The state is updated in place, so one lane of a row writes values that other lanes have read.
TEST_CASE("rows that see nothing of a launch carry their state through it") {
  for (const char* config :
       {"mma m64 n64 w4 s2", "wgmma m64 n64 w4 s2 b2", "wgmma m128 n128 w8 s2"}) {
    if (std::string(config).starts_with("wgmma") && !on_hopper()) continue;
    CAPTURE(std::string(config));
    // Through the first branch, rank 0's first 128 rows see none of rank 1's keys.
    Ring ring = make_ring(problem_of(512, sum({documents({0, 128}), dense()})), 128, config);
    check(ring.c, ring.run());
  }
}

// A kernel would do this if it took the second segment for the rows directly after the first.
TEST_CASE("a second segment at the positions after the first gives another answer") {
  Ring ring = make_ring(problem_of(512, causal() & window(200, 0)), 128,
                        on_hopper() ? "wgmma m128 n128 w8 s2" : "mma m128 n64 w8 s2");
  ring.each_launch([](attention::LaunchPlan& launch) {
    for (std::vector<Segment>* segments : {&launch.placement.q, &launch.placement.k}) {
      if (segments->size() == 2) (*segments)[1].start = (*segments)[0].start + 128;
    }
  });
  const Reference oracle = attention::reference(ring.c.problem, ring.c.inputs(), test::pool());
  CHECK_FALSE(annulus::compare(ring.c.problem, oracle, ring.run().result()).within_tolerance);
}

}  // namespace
}  // namespace annulus
