// Mistakes planted in the plan of a ring. Only a run can show them, by a wrong answer or a fault.

#include <doctest/doctest.h>

#include "annulus/types.h"
#include "ring/local_ring.h"
#include "ring/on_ring.h"
#include "support/options.h"

namespace annulus {
namespace {

using test::Case;
using test::DeviceAnswer;
using test::devices;
using test::draw_streams;
using test::pool;
using test::problem_of;
using test::RingMemory;

struct Planted {
  Case c;
  ShardMap shards;
  ring::PlannedRing plan;
  std::vector<ring::RankDevice> devices_of;
};

Planted plan_by_hand(int ranks, const Pattern& pattern, Sharding sharding = Sharding::kZigzag,
                     Route route = Route::kDirect) {
  const std::int64_t seq = 128 * ranks;  // equal shards, which differ only in their contents
  Planted planted{test::make_case(problem_of(seq, pattern), 47), {}, {}, {}};
  planted.shards = make_shards(sharding, ranks, seq, seq);
  std::vector<attention::DeviceLimits> limits;
  for (const Device& device : devices(ranks)) {
    const Device::Impl& inside = api::inside(device);
    limits.push_back(api::limits_of(inside));
    planted.devices_of.push_back({inside.context, inside.kernels.get(), inside.arch});
  }
  const ring::World world = ring::plan_world(planted.c.problem, planted.shards, route);
  const attention::Choice choice =
      attention::choose_config(ring::largest_hop(planted.c.problem, planted.shards), limits[0],
                               std::nullopt, ring::segments_of(world));
  planted.plan = ring::plan_ring(world, limits, choice);
  return planted;
}

// Waits for queued work, and clears the faults.
void recover(const std::vector<Device>& ring) {
  for (const Device& device : ring) {
    try {
      device.synchronize();
    } catch (const Error&) {
    }
  }
  for (const Device& device : ring) {
    device::clear_simulator_fault(*api::inside(device).context);
  }
  draw_streams(ring, 0);
}

enum class Outcome { kRight, kWrong, kFault };

// The outcome of a run of the current plan.
Outcome run_planted(const Planted& planted, std::uint64_t seed) {
  const int ranks = planted.shards.ranks();
  const ring::PlannedRing copy = planted.plan;
  const ring::LocalRing broken(copy, planted.devices_of);
  RingMemory memory(devices(ranks), planted.c, planted.shards);
  memory.make_workspace([&](int rank) {
    return static_cast<std::size_t>(copy.ranks[static_cast<std::size_t>(rank)].workspace.bytes);
  });
  draw_streams(devices(ranks), seed);
  Outcome outcome = Outcome::kRight;
  try {
    broken.run(memory.calls());
    const DeviceAnswer answer = memory.answer();
    const Reference oracle = attention::reference(planted.c.problem, planted.c.inputs(), pool());
    if (!annulus::compare(planted.c.problem, oracle, answer.result()).within_tolerance) {
      outcome = Outcome::kWrong;
    }
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kFault);
    outcome = Outcome::kFault;
  }
  recover(devices(ranks));
  return outcome;
}

TEST_CASE("local positions in place of global ones give another answer") {
  Planted planted = plan_by_hand(3, causal() & window(70, 0));
  CHECK(run_planted(planted, 0) == Outcome::kRight);
  for (ring::RankPlan& rank : planted.plan.ranks) {
    for (attention::LaunchPlan& launch : rank.launches) {
      // A kernel would mask with these positions if it counted from the shard's first row.
      for (std::size_t i = 0; i < launch.q_positions.size(); ++i) {
        launch.q_positions[i] = static_cast<std::int32_t>(i);
      }
      for (std::size_t i = 0; i < launch.k_positions.size(); ++i) {
        launch.k_positions[i] = static_cast<std::int32_t>(i);
      }
      for (std::vector<Segment>* segments : {&launch.placement.q, &launch.placement.k}) {
        std::int64_t row = 0;
        for (Segment& segment : *segments) {
          segment.start = row;
          row += segment.length;
        }
      }
      launch.problem.q0 = launch.problem.k0 = 0;
    }
  }
  CHECK(run_planted(planted, 0) == Outcome::kWrong);
}

TEST_CASE("a wrong offset into packed rows gives another answer") {
  Planted planted = plan_by_hand(3, dense());
  planted.plan.ranks[1].form.value_offset -= 64 * 2;
  CHECK(run_planted(planted, 0) != Outcome::kRight);
}

TEST_CASE("rows that are packed from elsewhere give another answer") {
  Planted planted = plan_by_hand(3, causal() & window(70, 0));
  std::vector<pattern::Interval> pieces = planted.plan.ranks[2].packed.pieces();
  REQUIRE(!pieces.empty());
  for (pattern::Interval& piece : pieces) {
    const std::int64_t shift = piece.begin > 0 ? -1 : 1;
    piece = {piece.begin + shift, piece.end + shift};
  }
  planted.plan.ranks[2].packed = ring::PackedRows(pieces);
  CHECK(run_planted(planted, 0) == Outcome::kWrong);
}

std::vector<ring::Op*> exchanges_of(Planted& planted, std::size_t rank, int round) {
  std::vector<ring::Op*> exchanges;
  for (ring::Op& op : planted.plan.ranks[rank].schedule.ops) {
    if (op.kind == ring::Op::Kind::kExchange && op.round == round) exchanges.push_back(&op);
  }
  return exchanges;
}

TEST_CASE("keys of the wrong rank give another answer") {
  for (const Route route : {Route::kDirect, Route::kRing}) {
    Planted planted = plan_by_hand(4, dense(), Sharding::kZigzag, route);
    CHECK(run_planted(planted, 0) == Outcome::kRight);
    // In round 1 each rank sends to the opposite rank.
    for (std::size_t rank = 0; rank < 4; ++rank) {
      for (ring::Op* op : exchanges_of(planted, rank, 1)) {
        op->sends.resize(1);
        op->receives.resize(1);
        op->sends[0].peer = op->receives[0].peer = static_cast<int>((rank + 2) % 4);
      }
    }
    CHECK(run_planted(planted, 0) != Outcome::kRight);
  }
}

TEST_CASE("a message that is lost on both sides is noticed") {
  Planted planted = plan_by_hand(4, dense());
  for (const std::size_t rank : {std::size_t{1}, std::size_t{2}}) {
    for (ring::Op* op : exchanges_of(planted, rank, 1)) {
      std::erase_if(rank == 1 ? op->sends : op->receives,
                    [&](const ring::Transfer& side) { return side.peer == (rank == 1 ? 2 : 1); });
    }
  }
  for (std::uint64_t seed = 0; seed < 4; ++seed)
    CHECK(run_planted(planted, seed) != Outcome::kRight);
}

// The order that the seed selects must not matter: work that no event orders is a fault.
TEST_CASE("a forgotten wait is a fault, whatever order the streams take") {
  if (!devices(1)[0].info().simulated) return;
  const int seeds = test::options().orders > 0 ? test::options().orders : 3;
  const Planted good = plan_by_hand(4, dense());
  int planted_ones = 0;
  for (std::size_t rank = 0; rank < 4; ++rank) {
    const std::vector<ring::Op>& ops = good.plan.ranks[rank].schedule.ops;
    for (std::size_t at = 0; at < ops.size(); ++at) {
      if (ops[at].waits.empty()) continue;
      // The join protects the next run and not this one.
      if (ops[at].kind == ring::Op::Kind::kJoin) continue;
      ++planted_ones;
      for (int seed = 0; seed < seeds; ++seed) {
        Planted broken = good;
        broken.plan.ranks[rank].schedule.ops[at].waits.clear();
        CAPTURE(rank);
        CAPTURE(at);
        CAPTURE(seed);
        CHECK(run_planted(broken, static_cast<std::uint64_t>(seed)) == Outcome::kFault);
      }
    }
  }
  // There are 6 launches that wait for keys, and 4 exchanges that wait for a slot.
  CHECK(planted_ones == 4 * (6 + 4));
}

TEST_CASE("a run that does not wait for its exchanges is in the way of the next") {
  if (!devices(1)[0].info().simulated) return;
  // Rank 0 sends its shard and uses only its own keys, so only the join waits for the send.
  Planted planted = plan_by_hand(3, causal(), Sharding::kContiguous);
  REQUIRE(planted.plan.ranks[0].schedule.ops.back().kind == ring::Op::Kind::kJoin);
  planted.plan.ranks[0].schedule.ops.pop_back();
  const ring::LocalRing broken(planted.plan, planted.devices_of);
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    RingMemory memory(devices(3), planted.c, planted.shards);
    memory.make_workspace([&](int rank) {
      return static_cast<std::size_t>(
          planted.plan.ranks[static_cast<std::size_t>(rank)].workspace.bytes);
    });
    draw_streams(devices(3), seed);
    bool fault = false;
    try {
      broken.run(memory.calls());
      // The caller reuses its memory as soon as its own stream permits.
      for (int rank = 0; rank < 3; ++rank) {
        const auto at = static_cast<std::size_t>(rank);
        const RingCall& call = memory.calls()[at];
        device::fill_bytes_async(*planted.devices_of[at].context,
                                 reinterpret_cast<std::uintptr_t>(call.workspace), 0,
                                 static_cast<std::size_t>(planted.plan.ranks[at].workspace.bytes),
                                 static_cast<abi::CUstream>(call.stream));
      }
      for (const Device& device : devices(3)) device.synchronize();
    } catch (const Error& error) {
      fault = error.code() == ErrorCode::kFault;
    }
    CAPTURE(seed);
    CHECK(fault);
    recover(devices(3));
  }
}

}  // namespace
}  // namespace annulus
