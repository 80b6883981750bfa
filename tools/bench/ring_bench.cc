// Measures the time to plan a ring on one core, and counts the bytes and launches that it needs.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "attention/kernels/kernel_config.h"
#include "base/fail.h"
#include "harness.h"
#include "ring/check_schedule.h"
#include "ring/plan.h"

namespace {

using namespace annulus;

constexpr std::int64_t kMillion = std::int64_t{1} << 20;

Problem million(const Pattern& pattern) {
  Problem problem;
  problem.heads = problem.kv_heads = 8;
  problem.seq_q = problem.seq_k = kMillion;
  problem.dim_qk = problem.dim_v = 128;
  problem.pattern = pattern;
  return problem;
}

// An H100's limits; planning touches no device.
std::vector<attention::DeviceLimits> limits(int ranks) {
  return std::vector<attention::DeviceLimits>(static_cast<std::size_t>(ranks),
                                              {{90, 'a'}, 132, 232448});
}

// Plans a ring with the heuristic's configuration.
ring::PlannedRing plan(const Problem& problem, const ShardMap& shards, int ranks) {
  const std::vector<attention::DeviceLimits> all = limits(ranks);
  const attention::Choice choice = attention::choose_config(
      ring::largest_hop(problem, shards), all[0], std::nullopt, ring::segments_of(shards));
  return ring::plan_ring(problem, shards, all, choice);
}

double plan_millis(const Problem& problem, Sharding sharding, int ranks) {
  const double start = bench::thread_seconds();
  const ShardMap shards = make_shards(sharding, ranks, problem.seq_q, problem.seq_k);
  const ring::PlannedRing ring = plan(problem, shards, ranks);
  if (ring.schedule.ranks != ranks) base::fail(ErrorCode::kInternal, "another ring was planned");
  return (bench::thread_seconds() - start) * 1e3;
}

double schedule_millis(const Problem& problem, Sharding sharding, int ranks) {
  const ShardMap shards = make_shards(sharding, ranks, problem.seq_q, problem.seq_k);
  std::vector<std::int64_t> rows, bytes;
  for (int rank = 0; rank < ranks; ++rank) {
    rows.push_back(pattern::total_length(shards.q[static_cast<std::size_t>(rank)]));
    bytes.push_back(ring::packed_shard(problem, rows.back()).bytes);
  }
  const double start = bench::thread_seconds();
  const ring::Schedule schedule =
      ring::make_schedule(ring::find_needs(problem, shards), rows, bytes);
  const double millis = (bench::thread_seconds() - start) * 1e3;
  if (schedule.ranks != ranks) base::fail(ErrorCode::kInternal, "another ring was planned");
  return millis;
}

struct Sizes {
  double over = 0;   // bytes of the fullest rank beyond its state and two shards
  double share = 0;  // bytes sent over those of a plain ring
};

Sizes sizes(const Problem& problem, Sharding sharding, int ranks) {
  const ShardMap shards = make_shards(sharding, ranks, problem.seq_q, problem.seq_k);
  const ring::PlannedRing ring = plan(problem, shards, ranks);
  Sizes sizes;
  std::int64_t sent = 0;
  std::int64_t plain = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    const std::int64_t rows = ring.ranks[at].problem.seq_q;
    const std::int64_t state = problem.batch * problem.heads * rows * (problem.dim_v + 2) * 4;
    std::int64_t largest = 0;
    for (const ring::PackedShard& shard : ring.packed) largest = std::max(largest, shard.bytes);
    const std::int64_t over =
        ring.ranks[at].workspace.bytes - (ranks == 1 ? 0 : state + 2 * largest);
    sizes.over = std::max(sizes.over, static_cast<double>(over));
    sent += ring.schedule.bytes_sent(rank);
    plain += ring.packed[at].bytes * (ranks - 1);
  }
  sizes.share = plain == 0 ? 0 : static_cast<double>(sent) / static_cast<double>(plain);
  return sizes;
}

}  // namespace

int main(int argc, char** argv) {
  bench::Bench bench("ring_bench", argc, argv);
  const Problem local = million(causal() & window(4095, 0));
  const Problem both = million(causal() & (window(4095, 0) | global(256)));
  bench.add({"plan, 64 ranks, 1M tokens, causal window 4096, contiguous", "ms", 100, true},
            [=] { return plan_millis(local, Sharding::kContiguous, 64); });
  bench.add({"plan, 64 ranks, 1M tokens, causal window 4096, zigzag", "ms", 100, true},
            [=] { return plan_millis(local, Sharding::kZigzag, 64); });
  bench.add({"plan, 64 ranks, 1M tokens, window 4096 and 256 global, zigzag", "ms", 100, true},
            [=] { return plan_millis(both, Sharding::kZigzag, 64); });
  bench.add({"schedule alone, 64 ranks, 1M tokens, causal", "ms", 0, true},
            [] { return schedule_millis(million(causal()), Sharding::kZigzag, 64); });
  for (const int ranks : {1, 2, 4, 8}) {
    Problem all = million(dense());
    all.seq_q = all.seq_k = 16384;
    bench.add({fmt::format("P = {}: a rank's bytes beyond its state and two shards", ranks),
               "bytes", 1 << 20, true},
              [=] { return sizes(all, Sharding::kZigzag, ranks).over; });
  }
  bench.add({"sent, 64 ranks, causal window 4096, contiguous", "of a plain ring", 0, true},
            [=] { return sizes(local, Sharding::kContiguous, 64).share; });
  bench.add({"sent, 64 ranks, causal window 4096, zigzag", "of a plain ring", 0, true},
            [=] { return sizes(local, Sharding::kZigzag, 64).share; });
  return bench.run();
}
