// The C interface of rings. Each function converts its arguments and calls annulus/ring.h.
#include "annulus/c_ring.h"
#include "annulus/c_tools.h"

#include <atomic>
#include <mutex>

#include "annulus/ring.h"
#include "c_api/functions.h"
#include "ring/turn.h"

namespace annulus::c_api {
namespace {

static_assert(ANNULUS_CONTIGUOUS == static_cast<int>(Sharding::kContiguous));
static_assert(ANNULUS_ZIGZAG == static_cast<int>(Sharding::kZigzag));
static_assert(ANNULUS_ROUTE_AUTO == static_cast<int>(Route::kAuto));
static_assert(ANNULUS_ROUTE_DIRECT == static_cast<int>(Route::kDirect));
static_assert(ANNULUS_ROUTE_RING == static_cast<int>(Route::kRing));
static_assert(sizeof(annulus_segment) == sizeof(Segment));

constexpr StructName kProblem = {"annulus_problem", "ANNULUS_PROBLEM_INIT"};
constexpr StructName kRingOptions = {"annulus_ring_options", "ANNULUS_RING_OPTIONS_INIT"};
constexpr StructName kRingInfo = {"annulus_ring_info", "ANNULUS_RING_INFO_INIT"};
constexpr StructName kRingRank = {"annulus_ring_rank", "ANNULUS_RING_RANK_INIT"};
constexpr StructName kRingCall = {"annulus_ring_call", "ANNULUS_RING_CALL_INIT"};

std::vector<annulus_segment> to_c(const std::vector<Segment>& segments) {
  std::vector<annulus_segment> c;
  for (const Segment& each : segments) c.push_back({each.start, each.length});
  return c;
}

std::vector<Segment> from_c(const char* name, const annulus_segment* c, std::size_t count) {
  if (count > 0) check_pointer(name, c);
  std::vector<Segment> segments;
  for (std::size_t i = 0; i < count; ++i) segments.push_back({c[i].start, c[i].length});
  return segments;
}

ShardMap shards_of(const annulus_ring_options& c, int ranks, const Problem& problem) {
  if (c.shards == nullptr) {
    if (c.sharding != ANNULUS_CONTIGUOUS && c.sharding != ANNULUS_ZIGZAG) {
      base::fail(ErrorCode::kInvalidArgument,
                 "sharding is {}; give ANNULUS_CONTIGUOUS, ANNULUS_ZIGZAG, or shards", c.sharding);
    }
    return make_shards(static_cast<Sharding>(c.sharding), ranks, problem.seq_q, problem.seq_k,
                       c.multiple);
  }
  check_array_count("shards", c.shard_count, ranks);
  ShardMap shards;
  for (int rank = 0; rank < ranks; ++rank) {
    const annulus_shard& shard = c.shards[rank];
    shards.q.push_back(from_c("q of a shard", shard.q, shard.q_count));
    shards.k.push_back(from_c("k of a shard", shard.k, shard.k_count));
  }
  return shards;
}

int rank_count(std::size_t ranks) {
  if (ranks < 1 || ranks > kMaxRanks) {
    base::fail(ErrorCode::kInvalidArgument, "a ring of {} ranks; give 1 to {}", ranks, kMaxRanks);
  }
  return static_cast<int>(ranks);
}

Route route_of(std::int64_t route) {
  if (route < ANNULUS_ROUTE_AUTO || route > ANNULUS_ROUTE_RING) {
    base::fail(ErrorCode::kInvalidArgument,
               "route is {}; give ANNULUS_ROUTE_AUTO, ANNULUS_ROUTE_DIRECT or ANNULUS_ROUTE_RING",
               route);
  }
  return static_cast<Route>(route);
}

RingOptions ring_plan_options(const annulus_ring_options& c) {
  RingOptions options{plan_options_of(c.plans), route_of(c.route)};
  if (c.config == nullptr) return options;
  if (!options.config.empty()) {
    base::fail(ErrorCode::kInvalidArgument,
               "the ring's options name the configuration {}, and the options of its plans name "
               "{}; give one",
               c.config, options.config);
  }
  options.config = c.config;
  return options;
}

struct RankShard {
  std::vector<annulus_segment> q;
  std::vector<annulus_segment> k;
};

struct RingObject {
  RingObject(RingPlan made, const ShardMap& shards)
      : ring(std::move(made)), schedule(lines(ring.info().schedule)), calls(shards.q.size()) {
    for (std::size_t rank = 0; rank < shards.q.size(); ++rank) {
      shard.push_back({to_c(shards.q[rank]), to_c(shards.k[rank])});
    }
  }
  RingPlan ring;
  std::string schedule;
  std::vector<RankShard> shard;
  std::mutex drawing;
  std::string picture;
  // Memory in which a run converts its arguments without allocating. One run at a time uses it.
  std::vector<RingCall> calls;
  std::atomic<bool> busy{false};
};

HandleTable<RingObject>& rings() {
  static auto* table =
      new HandleTable<RingObject>("ring", 0xb5, HandleTable<RingObject>::Use::kInItsProcess);
  return *table;
}
using RingPin = HandleTable<RingObject>::Pin;

struct RankPlanObject {
  RankPlanObject(RingRankPlan made, const ShardMap& shards)
      : plan(std::move(made)),
        schedule(lines(plan.info().schedule)),
        shard{to_c(shards.q[static_cast<std::size_t>(plan.rank())]),
              to_c(shards.k[static_cast<std::size_t>(plan.rank())])} {}
  RingRankPlan plan;
  std::string schedule;
  RankShard shard;
};

HandleTable<RankPlanObject>& rank_plans() {
  static auto* table = new HandleTable<RankPlanObject>(
      "plan of a rank", 0x71, HandleTable<RankPlanObject>::Use::kInItsProcess);
  return *table;
}
using RankPlanPin = HandleTable<RankPlanObject>::Pin;

// Reads the options of both kinds of rings, which are the same struct in C.
annulus_ring_options ring_options_of(const annulus_ring_options* given) {
  const annulus_ring_options defaults = ANNULUS_RING_OPTIONS_INIT;
  return given == nullptr ? defaults : read_struct(kRingOptions, given, defaults);
}

void write_info(annulus_ring_info* to, const RingInfo& info, const std::string& schedule,
                int ranks) {
  annulus_ring_info c = ANNULUS_RING_INFO_INIT;
  c.kernel = info.kernel.c_str();
  c.config = info.config.c_str();
  c.tuned = info.tuned.c_str();
  c.schedule = schedule.c_str();
  c.ranks = ranks;
  c.bytes_sent = info.bytes_sent;
  c.bytes_plain_ring = info.bytes_plain_ring;
  c.plan_ms = info.plan_ms;
  c.compile_ms = info.compile_ms;
  c.route_reason = info.route_reason.c_str();
  c.route = static_cast<std::int64_t>(info.route);
  c.rounds = info.rounds;
  c.messages = info.messages;
  c.bytes_needed = info.bytes_needed;
  c.bytes_relayed = info.bytes_relayed;
  write_struct(kRingInfo, to, c);
}

void write_rank(annulus_ring_rank* to, const RingRankInfo& info, const RankShard& shard,
                std::int64_t rank) {
  annulus_ring_rank c = ANNULUS_RING_RANK_INIT;
  c.device = info.device.c_str();
  c.shard = {shard.q.data(), shard.q.size(), shard.k.data(), shard.k.size()};
  c.rows_q = info.rows_q;
  c.rows_k = info.rows_k;
  c.launches = info.launches;
  c.full_tiles = info.full_tiles;
  c.partial_tiles = info.partial_tiles;
  c.bytes_sent = info.bytes_sent;
  c.bytes_received = info.bytes_received;
  c.workspace_bytes = info.workspace_bytes;
  c.device_bytes = info.device_bytes;
  c.predicted_micros = info.predicted_micros;
  c.min_micros = info.min_micros;
  c.max_micros = info.max_micros;
  c.rank = rank;
  write_struct(kRingRank, to, c);
}

RingCall call_of(const annulus_ring_call& c, std::size_t rank) {
  try {
    return {c.stream, operands_of(c.operands), c.workspace};
  } catch (const Error& error) {
    base::fail(error.code(), "rank {}: {}", rank, error.what());
  }
}

// The distance between elements of the array is the caller's struct_size.
void convert(const annulus_ring_call* c, std::size_t count, std::vector<RingCall>& calls) {
  if (count != calls.size()) {
    base::fail(ErrorCode::kInvalidArgument, "{} calls for a ring of {} ranks; give one for each",
               count, calls.size());
  }
  const std::size_t size = check_output(kRingCall, c);
  for (std::size_t rank = 0; rank < count; ++rank) {
    const auto* element = reinterpret_cast<const annulus_ring_call*>(
        reinterpret_cast<const std::byte*>(c) + rank * size);
    if (element->struct_size != size) {
      base::fail(
          ErrorCode::kInvalidArgument,
          "struct_size of call {} is {}, but struct_size of call 0 is {}; initialise each by {}",
          rank, element->struct_size, size, kRingCall.init);
    }
    calls[rank] =
        call_of(read_struct(kRingCall, element, annulus_ring_call ANNULUS_RING_CALL_INIT), rank);
  }
}

}  // namespace
}  // namespace annulus::c_api

extern "C" {

annulus_status annulus_ring_create(annulus_device* const* handles, size_t ranks,
                                   const annulus_problem* problem,
                                   const annulus_ring_options* given, annulus_ring** ring) {
  return guarded([&] {
    check_pointer("ring (where the handle goes)", ring);
    const int count = rank_count(ranks);
    check_pointer("devices", handles);
    const annulus_ring_options options = ring_options_of(given);
    std::vector<Device> all;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      all.push_back(DevicePin(devices(), number(handles[rank]))->device);
    }
    const Problem whole = problem_of(problem);
    validate(whole);
    const ShardMap shards = shards_of(options, count, whole);
    auto object = std::make_unique<RingObject>(
        plan_ring(all, whole, shards, ring_plan_options(options)), shards);
    *ring = reinterpret_cast<annulus_ring*>(rings().insert(std::move(object)));
  });
}

annulus_status annulus_ring_get_step(size_t ranks, const annulus_problem* problem,
                                     const annulus_ring_options* given, annulus_problem* step) {
  return guarded([&] {
    const Problem whole = problem_of(problem);
    validate(whole);
    const annulus_ring_options options = ring_options_of(given);
    const Problem made = ring_step(whole, shards_of(options, rank_count(ranks), whole));
    annulus_problem c = read_struct(kProblem, problem, annulus_problem ANNULUS_PROBLEM_INIT);
    c.seq_q = made.seq_q;
    c.seq_k = made.seq_k;
    c.carry_in = made.carry_in ? 1 : 0;
    c.carry_out = made.carry_out ? 1 : 0;
    c.want_lse = made.want_lse ? 1 : 0;
    write_struct(kProblem, step, c);
  });
}

annulus_status annulus_ring_destroy(annulus_ring* ring) {
  return guarded([&] { rings().erase(number(ring)); });
}

annulus_status annulus_ring_get_info(annulus_ring* ring, annulus_ring_info* to) {
  return guarded([&] {
    const RingPin pin(rings(), number(ring));
    write_info(to, pin->ring.info(), pin->schedule, pin->ring.ranks());
  });
}

annulus_status annulus_ring_get_rank(annulus_ring* ring, size_t rank, annulus_ring_rank* to) {
  return guarded([&] {
    const RingPin pin(rings(), number(ring));
    const RingInfo& all = pin->ring.info();
    if (rank >= all.ranks.size()) {
      base::fail(ErrorCode::kInvalidArgument, "rank {} of a ring of {}", rank, all.ranks.size());
    }
    write_rank(to, all.ranks[rank], pin->shard[rank], static_cast<std::int64_t>(rank));
  });
}

annulus_status annulus_ring_get_picture(annulus_ring* ring, const char** svg) {
  return guarded([&] {
    const RingPin pin(rings(), number(ring));
    check_pointer("svg (where the picture goes)", svg);
    const std::lock_guard lock(pin->drawing);
    if (pin->picture.empty()) pin->picture = pin->ring.picture_svg();
    *svg = pin->picture.c_str();
  });
}

annulus_status annulus_ring_run(annulus_ring* ring, const annulus_ring_call* calls, size_t count) {
  return guarded([&] {
    const RingPin pin(rings(), number(ring));
    const base::Turn turn(&pin->busy, ring::kOneRunAtATime);
    convert(calls, count, pin->calls);
    pin->ring.run(pin->calls);
  });
}

annulus_status annulus_ring_rank_plan_create(annulus_device* device,
                                             annulus_communicator* communicator,
                                             const annulus_problem* problem,
                                             const annulus_ring_options* given,
                                             annulus_ring_rank_plan** plan) {
  return guarded([&] {
    const DevicePin own(devices(), number(device));
    const CommunicatorPin ranks(communicators(), number(communicator));
    check_pointer("plan (where the handle goes)", plan);
    const annulus_ring_options options = ring_options_of(given);
    const Problem whole = problem_of(problem);
    const ShardMap shards = shards_of(options, ranks->communicator.ranks(), whole);
    give(plan, rank_plans(),
         std::make_unique<RankPlanObject>(
             plan_ring(own->device, ranks->communicator, whole, shards, ring_plan_options(options)),
             shards));
  });
}

annulus_status annulus_ring_rank_plan_destroy(annulus_ring_rank_plan* plan) {
  return guarded([&] { rank_plans().erase(number(plan)); });
}

annulus_status annulus_ring_rank_plan_get_info(annulus_ring_rank_plan* plan,
                                               annulus_ring_info* to) {
  return guarded([&] {
    const RankPlanPin pin(rank_plans(), number(plan));
    write_info(to, pin->plan.info(), pin->schedule, pin->plan.ranks());
  });
}

annulus_status annulus_ring_rank_plan_get_rank(annulus_ring_rank_plan* plan,
                                               annulus_ring_rank* to) {
  return guarded([&] {
    const RankPlanPin pin(rank_plans(), number(plan));
    write_rank(to, pin->plan.info().ranks.front(), pin->shard, pin->plan.rank());
  });
}

annulus_status annulus_ring_rank_plan_run(annulus_ring_rank_plan* plan,
                                          const annulus_ring_call* call, int64_t* run) {
  return guarded([&] {
    const RankPlanPin pin(rank_plans(), number(plan));
    const annulus_ring_call c =
        read_struct(kRingCall, call, annulus_ring_call ANNULUS_RING_CALL_INIT);
    const std::int64_t made = pin->plan.run({c.stream, operands_of(c.operands), c.workspace});
    if (run != nullptr) *run = made;
  });
}

}  // extern "C"
