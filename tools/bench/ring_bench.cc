// Measures the time to plan a rank of a ring on one core, and the memory of the plan. It also
// counts the data that a ring sends, the rounds of sending, and the memory of its ranks.

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "attention/kernels/kernel_config.h"
#include "base/fail.h"
#include "base/random.h"
#include "harness.h"
#include "ring/plan.h"

namespace {

using namespace annulus;

// The bytes that are allocated now, and the most that were allocated at once, over all threads.
std::atomic<std::int64_t> taken_bytes{0}, max_bytes{0};

constexpr std::int64_t kMillion = std::int64_t{1} << 20;

Problem million(const Pattern& pattern) {
  Problem problem;
  problem.heads = problem.kv_heads = 8;
  problem.seq_q = problem.seq_k = kMillion;
  problem.dim_qk = problem.dim_v = 128;
  problem.pattern = pattern;
  return problem;
}

// The limits of an H100. Planning uses no device.
constexpr attention::DeviceLimits kLimits = {{90, 'a'}, 132, 232448};

ShardMap shards_of(const Problem& problem, Sharding sharding, int ranks) {
  return make_shards(sharding, ranks, problem.seq_q, problem.seq_k);
}

// The plan of one rank, with the heuristic's configuration.
ring::RankPlan plan_one(const Problem& problem, Sharding sharding, int ranks, int rank) {
  const ring::World world =
      ring::plan_world(problem, shards_of(problem, sharding, ranks), Route::kAuto);
  const attention::Choice choice = attention::choose_config(
      ring::largest_hop(problem, world.shards), kLimits, std::nullopt, ring::segments_of(world));
  return ring::plan_rank(world, rank, kLimits, choice);
}

double plan_millis(const Problem& problem, Sharding sharding, int ranks) {
  const double start = bench::thread_seconds();
  const ring::RankPlan plan = plan_one(problem, sharding, ranks, ranks / 2);
  if (plan.rank != ranks / 2) base::fail(ErrorCode::kInternal, "another rank was planned");
  return (bench::thread_seconds() - start) * 1e3;
}

// The most memory that a rank holds at once while it plans, in MB.
double plan_megabytes(const Problem& problem, Sharding sharding, int ranks) {
  const std::int64_t before = taken_bytes;
  max_bytes = before;
  plan_one(problem, sharding, ranks, ranks / 2);
  return static_cast<double>(max_bytes - before) / 1e6;
}

double world_millis(const Problem& problem, Sharding sharding, int ranks) {
  const ShardMap shards = shards_of(problem, sharding, ranks);
  const double start = bench::thread_seconds();
  const ring::World world = ring::plan_world(problem, shards, Route::kAuto);
  const double millis = (bench::thread_seconds() - start) * 1e3;
  if (world.ranks() != ranks) base::fail(ErrorCode::kInternal, "another ring was planned");
  return millis;
}

// ---- The data that ranks send

// 512 x 512 blocks: the block on the diagonal, the block before it, and four random blocks.
Pattern scattered_blocks() {
  BlockLayout layout;
  layout.block_rows = layout.block_columns = 512;
  layout.seq_q = layout.seq_k = kMillion;
  layout.indptr = {0};
  base::Random random(5);
  const auto count = static_cast<std::uint32_t>(kMillion / 512);
  for (std::uint32_t row = 0; row < count; ++row) {
    std::set<std::int32_t> columns = {static_cast<std::int32_t>(row)};
    if (row > 0) columns.insert(static_cast<std::int32_t>(row) - 1);
    for (int i = 0; i < 4; ++i) columns.insert(static_cast<std::int32_t>(random.below(count)));
    layout.indices.insert(layout.indices.end(), columns.begin(), columns.end());
    layout.indptr.push_back(std::ssize(layout.indices));
  }
  return annulus::blocks(layout);
}

struct NamedPattern {
  const char* name;
  Pattern pattern;
};

Pattern six_documents() {
  return causal() & documents({0, 100000, 300000, 500000, 620000, 900000});
}

std::vector<NamedPattern> twelve_patterns() {
  const Pattern local = causal() & window(4095, 0);
  return {{"causal", causal()},
          {"dense", dense()},
          {"window", local},
          {"window and global", causal() & (window(4095, 0) | global(256))},
          {"window and sink", causal() & (window(4095, 0) | sink(4))},
          {"documents", six_documents()},
          {"prefix", causal() & (window(1023, 0) | prefix(65536))},
          {"strided", causal() & strided(64, 8, 64)},
          {"blocks", scattered_blocks()},
          {"heads",
           heads({local, causal() & (window(1023, 0) | sink(64)), causal() & window(65535, 0)})},
          {"sum", sum({local, causal() & segment(65536, 1)})},
          {"hierarchical", causal() & hierarchical({{1, 16, 64}, {16, 16, 64}, {256, -1, 64}})}};
}

ring::Rounds rounds_of(const Pattern& pattern, Sharding sharding, int ranks) {
  const Problem problem = million(pattern);
  return ring::plan_world(problem, shards_of(problem, sharding, ranks), Route::kAuto).rounds;
}

// The rows sent divided by the rows needed, for the worst of the patterns, numbers of ranks and
// maps.
double worst_sent() {
  double worst = 0;
  for (const NamedPattern& named : twelve_patterns()) {
    for (const int ranks : {2, 3, 5, 8, 16, 64}) {
      for (const Sharding sharding : {Sharding::kContiguous, Sharding::kZigzag}) {
        const ring::Rounds rounds = rounds_of(named.pattern, sharding, ranks);
        if (rounds.rows_needed == 0) continue;
        worst = std::max(
            worst, static_cast<double>(rounds.rows_sent) / static_cast<double>(rounds.rows_needed));
      }
    }
  }
  return worst;
}

// The messages divided by the number of (sender, receiver, round) with a message, over all numbers
// of ranks and maps.
double messages_of_peer(const Pattern& pattern) {
  double messages = 0, peers = 0;
  for (const int ranks : {2, 3, 5, 8, 16, 64}) {
    for (const Sharding sharding : {Sharding::kContiguous, Sharding::kZigzag}) {
      const ring::Rounds rounds = rounds_of(pattern, sharding, ranks);
      messages += static_cast<double>(rounds.messages);
      for (const std::vector<ring::Message>& round : rounds.rounds) {
        std::set<std::pair<int, int>> pairs;
        for (const ring::Message& message : round) pairs.insert({message.from, message.to});
        peers += static_cast<double>(pairs.size());
      }
    }
  }
  return messages / peers;
}

double worst_messages() {
  double worst = 0;
  for (const NamedPattern& named : twelve_patterns()) {
    // With scattered blocks, no order of rows suits all receivers.
    if (named.name == std::string("blocks")) continue;
    worst = std::max(worst, messages_of_peer(named.pattern));
  }
  return worst;
}

// The number of rounds of the rank that takes part in most rounds.
double exchanges(const Pattern& pattern, Sharding sharding, int ranks) {
  std::vector<int> count(static_cast<std::size_t>(ranks), 0);
  for (const std::vector<ring::Message>& round : rounds_of(pattern, sharding, ranks).rounds) {
    std::set<int> members;
    for (const ring::Message& message : round) members.insert({message.from, message.to});
    for (const int rank : members) ++count[static_cast<std::size_t>(rank)];
  }
  return *std::ranges::max_element(count);
}

// ---- The memory that ranks hold

// The bytes of workspace and lists of the fullest rank, without its state and two shards.
double bytes_over(const Problem& problem, Sharding sharding, int ranks) {
  const ring::World world =
      ring::plan_world(problem, shards_of(problem, sharding, ranks), Route::kAuto);
  const attention::Choice choice = attention::choose_config(
      ring::largest_hop(problem, world.shards), kLimits, std::nullopt, ring::segments_of(world));
  const std::int64_t row_bytes = ring::packed_form(problem).row_bytes;
  const std::int64_t largest = ring::largest_hop(problem, world.shards).seq_k * row_bytes;
  double most = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const ring::RankPlan plan = ring::plan_rank(world, rank, kLimits, choice);
    const std::int64_t rows = plan.problem.seq_q;
    const std::int64_t state = problem.batch * problem.heads * rows * (problem.dim_v + 2) * 4;
    std::int64_t held = plan.workspace.bytes;
    std::set<const void*> lists;
    for (const attention::LaunchPlan& launch : plan.launches) {
      const std::int64_t of_list = launch.tiles->device_bytes();
      held += launch.device_bytes - (lists.insert(launch.tiles.get()).second ? 0 : of_list);
    }
    most = std::max(most, static_cast<double>(held - (ranks == 1 ? 0 : state + 2 * largest)));
  }
  return most;
}

}  // namespace

void* operator new(std::size_t bytes) {
  void* const memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  taken_bytes += static_cast<std::int64_t>(malloc_usable_size(memory));
  if (taken_bytes > max_bytes) max_bytes = taken_bytes.load();
  return memory;
}
void operator delete(void* memory) noexcept {
  if (memory != nullptr) taken_bytes -= static_cast<std::int64_t>(malloc_usable_size(memory));
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }

int main(int argc, char** argv) {
  bench::Bench bench("ring_bench", argc, argv);
  const Problem local = million(causal() & window(4095, 0));
  const Problem both = million(causal() & (window(4095, 0) | global(256)));
  const Problem all = million(causal());
  bench.add({"plan of one of 64 ranks, 1M tokens, causal, zigzag", "ms", 40, true},
            [=] { return plan_millis(all, Sharding::kZigzag, 64); });
  bench.add({"the most memory while it is made", "MB", 16, true},
            [=] { return plan_megabytes(all, Sharding::kZigzag, 64); });
  bench.add({"plan of one of 64 ranks, causal window 4096, contiguous", "ms", 10, true},
            [=] { return plan_millis(local, Sharding::kContiguous, 64); });
  bench.add({"plan of one of 64 ranks, causal window 4096, zigzag", "ms", 10, true},
            [=] { return plan_millis(local, Sharding::kZigzag, 64); });
  bench.add({"plan of one of 64 ranks, window 4096 and 256 global, zigzag", "ms", 10, true},
            [=] { return plan_millis(both, Sharding::kZigzag, 64); });
  bench.add({"needs and rounds alone, 64 ranks, causal, zigzag", "ms", 0, true},
            [=] { return world_millis(all, Sharding::kZigzag, 64); });
  bench.add({"the same, 512 ranks", "ms", 0, true},
            [=] { return world_millis(all, Sharding::kZigzag, 512); });
  for (const int ranks : {1, 2, 4, 8}) {
    for (const NamedPattern& named : {NamedPattern{"dense", dense()}, {"causal", causal()}}) {
      Problem problem = million(named.pattern);
      problem.seq_q = problem.seq_k = 16384 * ranks;
      bench.add({fmt::format("P = {}, {}: a rank's bytes beyond its state and two shards", ranks,
                             named.name),
                 "bytes", 1 << 20, true},
                [=] { return bytes_over(problem, Sharding::kZigzag, ranks); });
    }
  }
  bench.add({"sent over needed, worst of 12 patterns, P 2 to 64, both maps", "", 1.02, true},
            [] { return worst_sent(); });
  bench.add({"messages for a peer and round, worst of 11 patterns", "", 1, true},
            [] { return worst_messages(); });
  bench.add({"the same for scattered blocks", "", 0, true},
            [] { return messages_of_peer(scattered_blocks()); });
  bench.add({"exchanges of a rank, window 4096, zigzag, 64 ranks", "", 2, true},
            [=] { return exchanges(local.pattern, Sharding::kZigzag, 64); });
  bench.add({"exchanges of a rank, documents, zigzag, 16 ranks", "", 11, true},
            [] { return exchanges(six_documents(), Sharding::kZigzag, 16); });
  return bench.run();
}
