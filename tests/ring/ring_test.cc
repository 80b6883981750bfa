// Rings of simulated devices, or of ranks on one real device, compared with one device and the
// oracle.

#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <thread>

#include "annulus/types.h"
#include "ring/on_ring.h"
#include "support/options.h"

namespace annulus {
namespace {

using test::Case;
using test::check;
using test::DeviceAnswer;
using test::devices;
using test::draw_streams;
using test::problem_of;
using test::RingMemory;
using test::run_ring;

TEST_CASE("random rings match the oracle and one device, and every order of streams its bits") {
  const int count = test::options().problems > 0 ? test::options().problems : 16;
  const int orders = test::options().orders > 0 ? test::options().orders : 3;
  for (int index = 0; index < count; ++index) {
    const Case c = test::random_ring_case(test::options().seed, static_cast<std::uint64_t>(index));
    base::Random random(test::options().seed * 31 + static_cast<std::uint64_t>(index));
    const int ranks = 1 + index % 7;
    const ShardMap shards = test::random_shards(random, ranks, c.problem.seq_q, c.problem.seq_k);
    CAPTURE(index);
    CAPTURE(ranks);
    CAPTURE(c.text);
    const std::vector<Device>& ring = devices(ranks);
    draw_streams(ring, 0);
    RingOptions options;
    options.route = static_cast<Route>(index % 3);
    const RingPlan plan = plan_ring(test::ring_ranks(ring, c.problem, shards, options));
    const auto branches = static_cast<int>(c.problem.pattern.branches().size());
    const RingInfo& info = plan.info();
    if (options.route != Route::kAuto) CHECK(info.route == options.route);
    CHECK(info.bytes_sent >= info.bytes_needed);
    for (const RingRankInfo& rank : info.ranks) {
      CHECK(rank.launches <= (info.rounds + 1) * branches);
    }
    RingMemory memory(ring, c, shards);
    DeviceAnswer first;
    REQUIRE_NOTHROW(first = run_ring(plan, memory));
    check(c, first);
    const int draws = !ring[0].info().simulated ? 0 : index % 50 == 0 ? orders : 1;
    for (int draw = 1; draw <= draws; ++draw) {
      draw_streams(ring, static_cast<std::uint64_t>(draw) + 1000 * test::options().seed);
      memory.reset();
      DeviceAnswer again;
      REQUIRE_NOTHROW((plan.run(memory.calls()), again = memory.answer()));
      CAPTURE(draw);
      CHECK(again == first);
    }
    draw_streams(ring, 0);
    if (count >= 200 && (index + 1) % 50 == 0) std::fprintf(stderr, "%d of %d\n", index + 1, count);
  }
}

TEST_CASE("one rank gives the bits of the plain plan") {
  for (const Sharding sharding : {Sharding::kContiguous, Sharding::kZigzag}) {
    const Case c = test::make_case(problem_of(200, causal()), 41);
    const ShardMap shards = make_shards(sharding, 1, 200, 200);
    const RingPlan plan = plan_ring(test::ring_ranks(devices(1), c.problem, shards));
    CHECK(plan.workspace_bytes(0) == 0);
    CHECK(plan.info().bytes_sent == 0);
    RingMemory memory(devices(1), c, shards);
    const DeviceAnswer ring = run_ring(plan, memory);
    CHECK(ring == test::run_case(devices(1)[0], c));
  }
}

TEST_CASE("sums, scores of positions and sink logits come out of a ring as out of one device") {
  const char* patterns[] = {
      "sum(causal & segment(64, 1), causal & segment(128, 2), causal & segment(320, 4))",
      "sum(window(40, 0), sink(5), causal & window(40, 0))"};
  for (const char* pattern : patterns) {
    for (const Sharding sharding : {Sharding::kContiguous, Sharding::kZigzag}) {
      Problem problem = problem_of(320, Pattern::parse(pattern));
      problem.score = Score::parse(
          "sink_logit(1.5), score_mod(score + 0.02 * (k - q) + table([[0.5, -1.0], [2.0, 0.0]], "
          "mod(div(q, 3), 2), mod(k, 2)) * h)");
      const Case c = test::make_case(problem, 43);
      const ShardMap shards = make_shards(sharding, 4, 320, 320);
      const RingPlan plan = plan_ring(test::ring_ranks(devices(4), c.problem, shards));
      RingMemory memory(devices(4), c, shards);
      check(c, run_ring(plan, memory));
      if (sharding == Sharding::kContiguous && pattern == patterns[1]) {
        // A rank launches two or three times for its own shard, twice for the shard before it, and
        // once for rank 0's shard because of the sink.
        CHECK(plan.info().ranks[0].launches == 3);
        CHECK(plan.info().ranks[3].launches == 5);
        CHECK(plan.info().bytes_sent < plan.info().bytes_plain_ring);
      }
    }
  }
}

TEST_CASE("runs follow each other without a word between them") {
  const Case c = test::make_case(problem_of(330, causal() | sink(3)), 42);
  const ShardMap shards = make_shards(Sharding::kZigzag, 4, 330, 330);
  const RingPlan plan = plan_ring(test::ring_ranks(devices(4), c.problem, shards));
  RingMemory memory(devices(4), c, shards);
  const DeviceAnswer first = run_ring(plan, memory);
  check(c, first);
  for (std::uint64_t seed = 1; seed <= 5 && devices(1)[0].info().simulated; ++seed) {
    draw_streams(devices(4), seed);
    memory.reset();
    for (int again = 0; again < 3; ++again) plan.run(memory.calls());
    CHECK(memory.answer() == first);
  }
  draw_streams(devices(4), 0);
}

TEST_CASE("a rank holds its state and two shards, whatever the number of ranks") {
  Problem problem = problem_of(4096, dense());
  problem.kv_heads = 2;
  for (const int ranks : {1, 2, 4, 8}) {
    const ShardMap shards = make_shards(Sharding::kZigzag, ranks, 4096, 4096);
    const auto used_bytes = [&](int rank) {
      return devices(ranks)[static_cast<std::size_t>(rank)].memory_statistics().used_bytes;
    };
    std::vector<std::int64_t> used_before;
    for (int rank = 0; rank < ranks; ++rank) used_before.push_back(used_bytes(rank));
    const RingPlan plan = plan_ring(test::ring_ranks(devices(ranks), problem, shards));
    std::vector<DeviceMemory> workspaces;
    for (int rank = 0; rank < ranks; ++rank) {
      workspaces.push_back(
          devices(ranks)[static_cast<std::size_t>(rank)].allocate(plan.workspace_bytes(rank)));
    }
    // If all ranks share one GPU, their memory adds up.
    const int apart = test::on_simulator() ? ranks : 1;
    for (int device = 0; device < apart; ++device) {
      std::int64_t least = 0, most = 0;
      for (int rank = device; rank < ranks; rank += apart) {
        const RingRankInfo& info = plan.info().ranks[static_cast<std::size_t>(rank)];
        least += info.workspace_bytes;
        most += info.workspace_bytes + info.device_bytes + 16384;
      }
      const std::int64_t taken = used_bytes(device) - used_before[static_cast<std::size_t>(device)];
      CHECK(taken >= least);
      CHECK(taken <= most);
    }
    for (int rank = 0; rank < ranks; ++rank) {
      const std::int64_t rows = plan.rank_problem(rank).seq_q;
      const std::int64_t state = problem.heads * rows * (problem.dim_v + 2) * 4;
      const std::int64_t shard = 2 * rows * problem.kv_heads * 64 * 2;
      const auto bytes = static_cast<std::int64_t>(plan.workspace_bytes(rank));
      CAPTURE(ranks);
      if (ranks == 1) CHECK(bytes == 0);
      if (ranks > 1) CHECK(bytes >= state + 2 * shard);
      CHECK(bytes <= state + (ranks > 1 ? 2 * shard : 0) + 4096);
    }
  }
}

TEST_CASE("a ring that is captured can be replayed") {
  const std::vector<Device> ring(4, devices(1)[0]);
  const Case c = test::make_case(problem_of(200, causal()), 43);
  const ShardMap shards = make_shards(Sharding::kContiguous, 4, 200, 200);
  const RingPlan plan = plan_ring(test::ring_ranks(ring, c.problem, shards));
  RingMemory memory(ring, c, shards);
  const DeviceAnswer first = run_ring(plan, memory);
  check(c, first);
  // All ranks use one stream, which is captured.
  const device::ContextPointer& context = api::inside(ring[0]).context;
  const abi::CudaTable& cuda = context->table();
  const device::Stream stream(context);
  std::vector<RingCall> calls = memory.calls();
  for (RingCall& call : calls) call.stream = stream.handle();
  const device::ContextScope scope(*context);
  memory.reset();
  abi::CUgraph graph = nullptr;
  abi::CUgraphExec exec = nullptr;
  REQUIRE(cuda.stream_begin_capture(stream.handle(), abi::kCaptureGlobal) == abi::kCudaSuccess);
  REQUIRE_NOTHROW(plan.run(calls));
  REQUIRE(cuda.stream_end_capture(stream.handle(), &graph) == abi::kCudaSuccess);
  REQUIRE(cuda.graph_instantiate(&exec, graph, 0) == abi::kCudaSuccess);
  CHECK_FALSE(memory.answer() == first);  // nothing ran yet
  for (int replay = 0; replay < 2; ++replay) {
    memory.reset();
    REQUIRE(cuda.graph_launch(exec, stream.handle()) == abi::kCudaSuccess);
    stream.synchronize();
    CHECK(memory.answer() == first);
  }
  CHECK(cuda.graph_exec_destroy(exec) == abi::kCudaSuccess);
  CHECK(cuda.graph_destroy(graph) == abi::kCudaSuccess);
}

std::string message_of(ErrorCode code, const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    CHECK(error.code() == code);
    return error.what();
  }
  return "no error";
}

void says(const std::string& text, const std::string& part) {
  CAPTURE(text);
  CHECK(text.find(part) != text.npos);
}

TEST_CASE("rings that cannot be are refused, naming the rank") {
  const Problem problem = problem_of(100, causal());
  const ShardMap shards = make_shards(Sharding::kZigzag, 3, 100, 100);
  const auto ranks = test::ring_ranks(devices(3), problem, shards);
  constexpr auto kInvalid = ErrorCode::kInvalidArgument;
  says(message_of(kInvalid, [] { plan_ring({}); }), "0 ranks");
  auto broken = ranks;
  broken[1].problem.seq_k = 101;
  says(message_of(kInvalid, [&] { plan_ring(broken); }), "rank 1 brought 101");
  broken = ranks;
  broken.pop_back();
  says(message_of(kInvalid, [&] { plan_ring(broken); }), "2 ranks, but shards for 3");
  broken = ranks;
  for (RingRank& rank : broken) rank.problem.carry_in = true;
  says(message_of(ErrorCode::kUnsupported, [&] { plan_ring(broken); }), "carry_in");
  broken = ranks;
  broken[2].problem.layer = 7;
  says(message_of(kInvalid, [&] { plan_ring(broken); }), "rank 2 brought 7");
  broken = ranks;
  for (RingRank& rank : broken) rank.options.config = "no such";
  says(message_of(kInvalid, [&] { plan_ring(broken); }), "no such");

  const Case c = test::make_case(problem, 44);
  const RingPlan plan = plan_ring(ranks);
  says(message_of(kInvalid, [&] { plan.workspace_bytes(3); }), "rank 3 of a ring of 3");
  says(message_of(kInvalid, [&] { plan.rank_problem(-1); }), "rank -1");
  RingMemory memory(devices(3), c, shards);
  says(message_of(kInvalid, [&] { plan.run(memory.calls()); }), "rank 0: the workspace");
  memory.make_workspace([&](int rank) { return plan.workspace_bytes(rank); });
  std::vector<RingCall> calls = memory.calls();
  calls.pop_back();
  says(message_of(kInvalid, [&] { plan.run(calls); }), "2 calls for a ring of 3");
  calls = memory.calls();
  calls[2].operands.k = nullptr;
  says(message_of(kInvalid, [&] { plan.run(calls); }), "rank 2: K is null");
  calls = memory.calls();
  calls[1].workspace = static_cast<char*>(calls[1].workspace) + 8;
  says(message_of(kInvalid, [&] { plan.run(calls); }), "rank 1: the workspace");
  calls = memory.calls();
  calls[2].workspace = calls[0].workspace;
  says(message_of(kInvalid, [&] { plan.run(calls); }), "rank 0 and rank 2 overlap");
  plan.run(memory.calls());
  check(c, memory.answer());  // the rejected calls launched nothing
}

TEST_CASE("more ranks than rows, and worlds without any") {
  for (const std::int64_t seq : {0, 1, 3}) {
    const Case c = test::make_case(problem_of(seq, causal()), 45);
    for (const Sharding sharding : {Sharding::kContiguous, Sharding::kZigzag}) {
      const ShardMap shards = make_shards(sharding, 7, seq, seq);
      const RingPlan plan = plan_ring(test::ring_ranks(devices(7), c.problem, shards));
      RingMemory memory(devices(7), c, shards);
      check(c, run_ring(plan, memory));
    }
  }
  Problem none = problem_of(50, causal());
  none.batch = 0;
  const Case c = test::make_case(none, 46);
  const ShardMap shards = make_shards(Sharding::kZigzag, 3, 50, 50);
  const RingPlan plan = plan_ring(test::ring_ranks(devices(3), none, shards));
  RingMemory memory(devices(3), c, shards);
  CHECK_NOTHROW(run_ring(plan, memory));
}

TEST_CASE("threads that run one ring at a time are refused, not mixed up") {
  const Case c = test::make_case(problem_of(150, causal()), 48);
  const ShardMap shards = make_shards(Sharding::kZigzag, 3, 150, 150);
  const RingPlan plan = plan_ring(test::ring_ranks(devices(3), c.problem, shards));
  RingMemory one(devices(3), c, shards);
  RingMemory other(devices(3), c, shards);
  const DeviceAnswer expected = run_ring(plan, one);
  other.make_workspace([&](int rank) { return plan.workspace_bytes(rank); });
  const auto run_many = [&](const RingMemory& memory) {
    for (int i = 0; i < 20; ++i) {
      try {
        plan.run(memory.calls());
      } catch (const Error& error) {
        if (error.code() != ErrorCode::kInvalidArgument) std::abort();
        --i;
        std::this_thread::yield();
      }
    }
  };
  std::thread thread([&] { run_many(one); });
  run_many(other);
  thread.join();
  CHECK(one.answer() == expected);
  CHECK(other.answer() == expected);
}

}  // namespace
}  // namespace annulus
