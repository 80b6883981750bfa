#include "attention/tiles/tile_cache.h"

#include <doctest/doctest.h>

#include <atomic>
#include <map>
#include <thread>
#include <tuple>

#include "attention/tiles/tile_grid.h"
#include "params/attention_params.h"
#include "pattern/mask_code.h"
#include "support/random_problem.h"

namespace annulus {
namespace {

using attention::TileCache;
using attention::TileList;

std::shared_ptr<const BlockLayout> layout_in(const Problem& problem) {
  return pattern::emit(problem.pattern, kernels::kMaskNumbers,
                       {problem.heads,
                        {problem.q_position(), problem.q_position() + problem.seq_q},
                        problem.context()})
      .layout;
}

TileList make(const Problem& problem, std::int64_t rows, std::int64_t columns) {
  return attention::make_plan_tiles(problem, attention::placement_of(problem), rows, columns,
                                    layout_in(problem).get());
}

auto arrays(const TileList& list) {
  return std::tie(list.row_begin, list.tiles, list.runs, list.row_order, list.head_list,
                  list.tile_masks, list.mask_words, list.lists, list.row_tiles, list.column_tiles,
                  list.tile_rows, list.tile_columns);
}

// The number of visible pairs without a tile, and of hidden pairs in tiles that are marked full.
std::int64_t wrong_pairs(const Problem& problem, const TileList& list) {
  constexpr int kMissing = 0, kFull = 1, kPartial = 2;
  std::int64_t wrong = 0;
  for (std::int64_t head = 0; head < problem.heads; ++head) {
    for (std::int64_t row = 0; row < list.row_tiles; ++row) {
      std::vector<int> state(static_cast<std::size_t>(list.column_tiles), kMissing);
      for (const pattern::BlockRun& run : list.row_runs(list.list_of(head), row)) {
        for (std::int64_t tile = run.begin; tile < run.end; ++tile) {
          state[static_cast<std::size_t>(tile)] = run.partial ? kPartial : kFull;
        }
      }
      const std::int64_t last = std::min((row + 1) * list.tile_rows, problem.seq_q);
      for (std::int64_t i = row * list.tile_rows; i < last; ++i) {
        for (std::int64_t j = 0; j < problem.seq_k; ++j) {
          const bool visible = problem.pattern.visible(head, problem.q_position() + i,
                                                       problem.k_position() + j, problem.context());
          wrong += state[static_cast<std::size_t>(j / list.tile_columns)] ==
                   (visible ? kMissing : kFull);
        }
      }
    }
  }
  return wrong;
}

TEST_CASE("lists of a grid hold for every problem on it") {
  for (std::uint64_t index = 0; index < 400; ++index) {
    Problem problem = test::random_problem(5, index);
    if (problem.pattern.branches().size() > 1) continue;
    if (index % 2 == 0) problem.seq_q = static_cast<std::int64_t>(index % 5);
    const std::int64_t rows = index % 3 == 0 ? 16 : 64, columns = index % 5 == 0 ? 32 : 64;
    CAPTURE(problem.pattern.to_string());
    CAPTURE(problem.seq_q);
    CAPTURE(problem.seq_k);
    const TileList list = make(problem, rows, columns);
    CHECK(list.row_tiles == (problem.seq_q + rows - 1) / rows);
    CHECK(list.column_tiles == (problem.seq_k + columns - 1) / columns);
    CHECK(wrong_pairs(problem, list) == 0);
  }
}

TEST_CASE("equal keys have equal lists") {
  base::Random random(6);
  std::map<std::string, TileList> known;
  int again = 0;
  for (int i = 0; i < 4000; ++i) {
    Problem problem;
    problem.dim_qk = problem.dim_v = 64;
    problem.seq_q = random.below(3) == 0 ? 1 : 1 + random.below(150);
    problem.seq_k = 100 + random.below(80);
    problem.heads = 1 + random.below(2);
    problem.layer = random.below(2);
    if (random.below(3) == 0) problem.q0 = 16 * random.below(4);
    const std::int64_t some = 1 + random.below(2);
    const Pattern patterns[] = {causal() & (window(40 * some, 0) | global(8)),
                                annulus::random(some, 3, 32) | sink(8),
                                strided(2, some, 32),
                                segment(64, 2),
                                vertical_slash({4, 40 * some}, {0, 9}),
                                heads({causal(), window(some, 0) | sink(some)}),
                                documents({0, 50 * some}) & (window(30, 0) | sink(4))};
    problem.pattern = patterns[random.below(std::size(patterns))];
    const std::int64_t rows = 16 * some, columns = 32;
    const attention::TileGrid grid =
        attention::grid_of(problem, attention::placement_of(problem), rows, columns);
    const TileList list = make(problem, rows, columns);
    if (list.tile_order == kernels::TileOrder::kBand) continue;  // it has no key
    const auto [place, added] =
        known.try_emplace(attention::key_of(problem, grid, rows, columns), list);
    if (added) continue;
    ++again;
    CAPTURE(place->first);
    CHECK(arrays(place->second) == arrays(list));
  }
  CHECK(again > 200);
}

Problem decode(const Pattern& pattern, std::int64_t keys) {
  Problem problem;
  problem.dim_qk = problem.dim_v = 128;
  problem.heads = 8;
  problem.seq_q = 1;
  problem.seq_k = keys;
  problem.pattern = pattern;
  return problem;
}

TEST_CASE("a decode that grows token by token finds its lists") {
  // 32 layers with one of three patterns each, 10,000 steps.
  const Pattern patterns[] = {causal() & (window(4095, 0) | sink(4)),
                              causal() & (window(1023, 0) | global(256)),
                              causal() & (strided(16, 4, 64) | sink(64))};
  TileCache cache({std::int64_t{64} << 20, 512});
  constexpr int kSteps = 10000, kLayers = 32;
  for (std::int64_t step = 1; step <= kSteps; ++step) {
    for (std::size_t layer = 0; layer < kLayers; ++layer) {
      const Problem problem = decode(patterns[layer % 3], 20000 + step);
      cache.get(problem, attention::placement_of(problem), 64, 64, nullptr);
    }
  }
  const base::CacheCounters counters = cache.counters();
  CHECK(counters.misses == 3 * 157);  // the tiles that contain these positions, for each pattern
  CHECK(counters.hits + counters.misses == kSteps * kLayers);
  CHECK(static_cast<double>(counters.hits) >= 0.97 * kSteps * kLayers);
}

TEST_CASE(
    "what is computed from the lengths is not kept, and any other parameter is another list") {
  TileCache cache({std::int64_t{64} << 20, 512});
  const auto get = [&](const Problem& problem, std::int64_t rows = 64) {
    return cache.get(problem, attention::placement_of(problem), rows, 64, nullptr);
  };
  CHECK(get(decode(causal() & window(4095, 0), 5000))->tile_order == kernels::TileOrder::kBand);
  CHECK(cache.counters().misses == 0);
  const Pattern pattern = causal() & (window(1023, 0) | sink(4));
  const auto first = get(decode(pattern, 5000));
  CHECK(get(decode(pattern, 5001)) == first);
  CHECK(get(decode(pattern, 5057)) != first);  // its query is in the next tile
  CHECK(get(decode(pattern, 5000), 128) != first);
  CHECK(get(decode(causal() & (window(1022, 0) | sink(4)), 5000)) != first);
  Problem other = decode(pattern, 5000);
  other.heads = 4;
  CHECK(get(other) != first);
  other = decode(pattern, 5000);
  other.layer = 3;  // nothing is drawn at random, so the layer does not matter
  CHECK(get(other) == first);
}

TEST_CASE("threads that ask for one list share its builder") {
  const Problem problem = decode(causal() & (window(100000, 0) | global(64)), 300000);
  for (int round = 0; round < 10; ++round) {
    TileCache cache({std::int64_t{64} << 20, 4});
    std::vector<std::shared_ptr<const TileList>> found(6);
    std::vector<std::thread> threads;
    std::atomic<std::size_t> ready{0};
    for (auto& mine : found) {
      threads.emplace_back([&] {
        ++ready;
        while (ready < found.size()) std::this_thread::yield();
        mine = cache.get(problem, attention::placement_of(problem), 64, 64, nullptr);
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const auto& each : found) CHECK(each == found[0]);
    CHECK(cache.counters().misses == 1);
  }
}

}  // namespace
}  // namespace annulus
