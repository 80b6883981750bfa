#include "annulus/layout.h"

#include <doctest/doctest.h>

#include <atomic>
#include <limits>
#include <map>
#include <thread>

#include "layout/sample_layout.h"
#include "pattern/classify.h"

namespace annulus {
namespace {

using base::Random;
using test::between;
using test::code_of;
using test::state_at;

TEST_CASE("a cached layout holds for all lengths of its grid") {
  Random random(71);
  LayoutCache cache;
  for (int i = 0; i < 300; ++i) {
    const Pattern pattern = test::random_pattern(&random, 3, nullptr);
    const std::int64_t rows = between(&random, 1, 20), columns = between(&random, 1, 20);
    const std::int64_t layer = between(&random, 0, 3);
    const LayoutQuery query(pattern, rows, columns, 1, layer);
    const std::int64_t seq_q = between(&random, 0, 60), seq_k = between(&random, 0, 60);
    const auto found = cache.get(query, seq_q, seq_k);
    found->layout.validate();
    CHECK(found->q_position <= seq_k - seq_q);
    std::int64_t wrong = 0;
    for (std::int64_t q = seq_k - seq_q; q < seq_k; ++q) {
      for (std::int64_t k = 0; k < seq_k; ++k) {
        const int state = state_at(found->layout, 0, q - found->q_position, k);
        const bool visible = pattern.visible(0, q, k, {seq_k, layer});
        wrong += (visible && state == 0) || (!visible && state == 1);
      }
    }
    CHECK(wrong == 0);
    CHECK(found->row_of(seq_k - seq_q) == 0);
  }
}

TEST_CASE("equal keys have equal layouts, and any other parameter is another key") {
  Random random(72);
  const auto shared = std::make_shared<const BlockLayout>(test::random_layout(&random, 50, 50));
  struct Asked {
    Pattern pattern;
    std::int64_t rows, columns, seq_q, seq_k;
  };
  std::map<std::string, Asked> known;
  int again = 0;
  for (int i = 0; i < 3000; ++i) {
    const Asked asked = {test::random_pattern(&random, 1 + random.below(2), shared),
                         between(&random, 1, 3) * 8, between(&random, 1, 3) * 8,
                         between(&random, 1, 40), between(&random, 1, 40)};
    const LayoutQuery query(asked.pattern, asked.rows, asked.columns);
    const auto [place, added] = known.try_emplace(query.key(asked.seq_q, asked.seq_k), asked);
    if (added) continue;
    ++again;
    const Asked& before = place->second;
    CHECK(before.pattern == asked.pattern);
    CHECK(before.rows == asked.rows);
    CHECK(before.columns == asked.columns);
    LayoutCache one, other;
    const auto a = one.get(query, asked.seq_q, asked.seq_k);
    const auto b = other.get(LayoutQuery(before.pattern, before.rows, before.columns), before.seq_q,
                             before.seq_k);
    CHECK(a->layout == b->layout);
    CHECK(a->q_position == b->q_position);
  }
  CHECK(again > 20);
}

TEST_CASE("every parameter is in the key") {
  Random random(73);
  const BlockLayout some = test::random_blocks(&random,
                                               {.block_rows = 8,
                                                .block_columns = 8,
                                                .seq_q = 64,
                                                .seq_k = 64,
                                                .heads = 1,
                                                .indptr = {},
                                                .indices = {},
                                                .partial = {}},
                                               1);
  BlockLayout more = unite(some, make_layout(causal(), {8, 8, 64, 64}));
  const Pattern patterns[] = {causal(),
                              ~causal(),
                              window(5, 0),
                              window(6, 0),
                              window(5, 1),
                              window(-1, 0),
                              sink(5),
                              sink(6),
                              global(5),
                              global({5}),
                              global({5, 6}),
                              documents({0, 5}),
                              documents({0, 6}),
                              blocks(some),
                              blocks(more),
                              causal() & window(5, 0),
                              causal() | window(5, 0),
                              window(5, 0) & causal(),
                              dilated(3),
                              block_dilated(3, 8),
                              block_dilated(3, 16),
                              strided(4, 1, 8),
                              strided(4, 2, 8),
                              annulus::random(2, 7, 8),
                              annulus::random(3, 7, 8),
                              annulus::random(2, 8, 8),
                              annulus::random(2, 7, 16),
                              segment(32, 2),
                              segment(32, 4),
                              axial(8, 8),
                              axial(8, 4),
                              natten(8, 8, 3),
                              natten(8, 8, 5),
                              vertical_slash({1, 2}, {3}),
                              vertical_slash({1}, {2, 3}),
                              hierarchical({{2, 3, 8}}),
                              hierarchical({{2, -1, 8}}),
                              heads({causal(), dense()}),
                              sum({causal(), dense()}),
                              preset("bigbird")};
  std::map<std::string, int> keys;
  int count = 0;
  for (const Pattern& pattern : patterns) {
    for (const auto& [rows, columns] : {std::pair{8, 8}, {8, 16}, {16, 8}}) {
      const LayoutQuery query(pattern, rows, columns);
      // The grids differ in columns, in rows, and in the begin of the rows.
      for (const auto& [seq_q, seq_k] : {std::pair{64, 64}, {64, 96}, {32, 64}, {48, 64}}) {
        ++keys[query.key(seq_q, seq_k)];
        ++count;
      }
    }
  }
  CHECK(static_cast<int>(keys.size()) == count);
  BlockLayout two = test::random_blocks(&random, some, 2);
  CHECK(LayoutQuery(blocks(two), 8, 8, 2).key(64, 64) !=
        LayoutQuery(blocks(some), 8, 8).key(64, 64));
  CHECK(LayoutQuery(causal(), 8, 8, 4).key(64, 64) != LayoutQuery(causal(), 8, 8).key(64, 64));
  // The layer and the number of candidate blocks matter only if blocks are chosen.
  const Pattern chosen = annulus::random(2, 7, 32);
  CHECK(LayoutQuery(chosen, 64, 64, 1, 1).key(1, 64) != LayoutQuery(chosen, 64, 64).key(1, 64));
  CHECK(LayoutQuery(chosen, 64, 64).key(1, 32) != LayoutQuery(chosen, 64, 64).key(1, 33));
  CHECK(LayoutQuery(chosen, 64, 64).key(1, 33) == LayoutQuery(chosen, 64, 64).key(1, 64));
  CHECK(LayoutQuery(causal(), 64, 64, 1, 1).key(1, 32) == LayoutQuery(causal(), 64, 64).key(1, 33));
  // Lengths with the same grid share a key.
  CHECK(LayoutQuery(causal(), 8, 8).key(1, 57) == LayoutQuery(causal(), 8, 8).key(1, 64));
  CHECK(LayoutQuery(causal(), 8, 8).key(57, 57) == LayoutQuery(causal(), 8, 8).key(64, 64));
}

TEST_CASE("the cache keeps within its limits and drops what was used longest ago") {
  const LayoutQuery query(causal() & window(100, 0), 16, 16);
  LayoutCache cache({std::int64_t{1} << 30, 3});
  const auto length = [](int i) { return std::int64_t{16} * (i + 1); };
  for (int i = 0; i < 3; ++i) cache.get(query, length(i), length(i));
  cache.get(query, length(0), length(0));  // it is used again, so 1 is the oldest
  cache.get(query, length(3), length(3));
  LayoutCacheCounters counters = cache.counters();
  CHECK(counters.misses == 4);
  CHECK(counters.hits == 1);
  CHECK(counters.evictions == 1);
  CHECK(counters.entries == 3);
  cache.get(query, length(0), length(0));
  CHECK(cache.counters().hits == 2);
  cache.get(query, length(1), length(1));
  CHECK(cache.counters().misses == 5);
  cache.clear();
  counters = cache.counters();
  CHECK(counters.entries == 0);
  CHECK(counters.bytes == 0);
  CHECK(counters.misses == 5);

  LayoutCache small({20000, 1000});
  for (int i = 0; i < 200; ++i) {
    small.get(query, length(i % 60), length(i % 60));
    CHECK(small.counters().bytes <= 20000);
  }
  CHECK(small.counters().evictions > 0);
  CHECK(small.counters().entries > 0);
  // A layout that is larger than the whole cache is returned but not kept.
  const auto large = small.get(query, 65536, 65536);
  CHECK(large->layout.rows() == 4096);
  CHECK(small.counters().too_large == 1);
  CHECK(small.counters().bytes <= 20000);
  LayoutCache none({1 << 20, 0});
  CHECK(none.get(query, 64, 64)->layout.rows() == 4);
  CHECK(none.counters().entries == 0);
}

TEST_CASE("readers keep what the cache has dropped") {
  const LayoutQuery query(causal(), 16, 16);
  LayoutCache cache({std::int64_t{1} << 30, 1});
  const auto held = cache.get(query, 160, 160);
  const BlockLayout before = held->layout;
  CHECK(cache.get(query, 160, 160) == held);  // the same object
  cache.get(query, 320, 320);
  CHECK(cache.counters().evictions == 1);
  cache.clear();
  CHECK(held->layout == before);
}

TEST_CASE("what cannot be made is an error for each call, and nothing stays") {
  LayoutCache cache;
  const LayoutQuery query(dense(), 1, 1);
  const std::int64_t many = std::int64_t{1} << 20;
  CHECK(code_of([&] { cache.get(query, many, many); }) == ErrorCode::kLimit);
  CHECK(code_of([&] { cache.get(query, many, many, {.steps = 0}); }) == ErrorCode::kOutOfMemory);
  CHECK(cache.counters().failures == 2);
  CHECK(cache.counters().entries == 0);
  CHECK(cache.get(query, 4, 4)->layout.indices.size() == 16);
  CHECK(code_of([&] { cache.get(query, -1, 4); }) == ErrorCode::kInvalidArgument);
  constexpr auto kLeast = std::numeric_limits<std::int64_t>::min();
  CHECK(code_of([&] { query.key(27, kLeast); }) == ErrorCode::kInvalidArgument);
  CHECK(code_of([&] { query.key(kLeast, 27); }) == ErrorCode::kInvalidArgument);
  CHECK(code_of([] { LayoutQuery(causal(), 0, 8); }) == ErrorCode::kInvalidArgument);
  CHECK(code_of([] { LayoutQuery(causal(), 8, 8, 0); }) == ErrorCode::kInvalidArgument);
}

TEST_CASE("a decode that grows token by token finds its layouts") {
  // There are 32 layers with one of three patterns each, and 10,000 steps.
  const LayoutQuery queries[] = {LayoutQuery(causal() & (window(4095, 0) | sink(4)), 128, 128),
                                 LayoutQuery(causal() & (window(1023, 0) | global(256)), 128, 128),
                                 LayoutQuery(causal(), 128, 128)};
  LayoutCache cache;
  for (std::int64_t step = 1; step <= 10000; ++step) {
    for (int layer = 0; layer < 32; ++layer) cache.get(queries[layer % 3], 1, 20000 + step);
  }
  const LayoutCacheCounters counters = cache.counters();
  CHECK(counters.misses == 3 * 79);  // the blocks that contain these positions, for each pattern
  CHECK(static_cast<double>(counters.hits) / (32.0 * 10000) > 0.999);
  CHECK(counters.bytes <= std::int64_t{256} << 20);
}

TEST_CASE("threads share one builder for each key") {
  const LayoutQuery query(causal() & window(2000, 0), 8, 8);
  for (int round = 0; round < 20; ++round) {
    LayoutCache cache;
    std::atomic<int> ready{0};
    std::vector<std::thread> threads;
    std::vector<std::shared_ptr<const GridLayout>> found(8);
    for (std::size_t i = 0; i < found.size(); ++i) {
      threads.emplace_back([&, i] {
        ++ready;
        while (ready < 8) std::this_thread::yield();
        found[i] = cache.get(query, 4096, 4096);
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const auto& each : found) CHECK(each == found[0]);
    const LayoutCacheCounters counters = cache.counters();
    CHECK(counters.misses == 1);
    CHECK(counters.hits + counters.waits == 7);
  }
}

TEST_CASE("threads hammer a cache that is too small") {
  const LayoutQuery queries[] = {LayoutQuery(causal(), 16, 16),
                                 LayoutQuery(causal() & window(40, 0), 16, 16),
                                 LayoutQuery(global(20), 16, 16)};
  LayoutCache cache({6000, 5});
  std::atomic<std::int64_t> wrong{0};
  std::vector<std::thread> threads;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    threads.emplace_back([&, seed] {
      Random random(seed);
      std::shared_ptr<const GridLayout> held;
      for (int i = 0; i < 400; ++i) {
        const std::int64_t length = 16 * between(&random, 1, 8);
        const auto found = cache.get(queries[random.below(3)], length, length);
        wrong += found->layout.rows() != length / 16;
        if (random.below(10) == 0) held = found;
        if (held)
          wrong +=
              held->layout.indptr.back() != static_cast<std::int64_t>(held->layout.indices.size());
        if (random.below(100) == 0) cache.clear();
        wrong += cache.counters().bytes > 6000;
        wrong += cache.counters().entries > 5;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  const LayoutCacheCounters counters = cache.counters();
  CHECK(counters.hits + counters.waits + counters.misses == 6 * 400);
  CHECK(counters.evictions > 0);
}

}  // namespace
}  // namespace annulus
