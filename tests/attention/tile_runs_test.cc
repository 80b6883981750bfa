// Rows that are stored as runs, compared with rows that are stored as lists.

#include "attention/tiles/tile_runs.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>

#include "attention/plan/plan.h"
#include "attention/tiles/tile_band.h"
#include "attention/tiles/tile_counts.h"
#include "support/random_problem.h"

namespace annulus::attention {
namespace {

using kernels::TileOrder;
using pattern::BlockRun;

constexpr std::array<std::pair<int, int>, 7> kTiles = {
    std::pair{128, 64}, {64, 64}, {64, 96}, {48, 80}, {16, 128}, {64, 112}, {1, 7}};

// Compares every row and every sum. Returns the order in which tiles are found.
TileOrder compare(const Problem& problem, std::int64_t rows, std::int64_t columns) {
  const TileList listed = make_tile_list(problem, rows, columns, nullptr, ListForm::kListed);
  const TileList made = make_tile_list(problem, rows, columns, nullptr);
  REQUIRE(made.row_tiles == listed.row_tiles);
  CHECK(made.full_tiles * listed.lists == listed.full_tiles * made.lists);
  CHECK(made.partial_tiles * listed.lists == listed.partial_tiles * made.lists);
  CHECK(made.longest_row == listed.longest_row);
  CHECK(made.empty_rows * listed.lists == listed.empty_rows * made.lists);
  for (std::int64_t head = 0; head < problem.heads; ++head) {
    for (std::int64_t row = 0; row < made.row_tiles; ++row) {
      CAPTURE(row);
      REQUIRE(made.row_length(made.list_of(head), row) ==
              listed.row_length(listed.list_of(head), row));
      REQUIRE(made.row_runs(made.list_of(head), row) == listed.row_runs(listed.list_of(head), row));
    }
  }
  return made.tile_order;
}

// A random pattern. find_band may or may not accept it.
Pattern random_band(base::Random& random, std::int64_t most, int depth) {
  const auto number = [&] {
    return static_cast<std::int64_t>(random.below(static_cast<std::uint32_t>(most + most / 4 + 1)));
  };
  if (depth > 0 && random.below(2) == 0) {
    const Pattern a = random_band(random, most, depth - 1);
    if (random.below(5) == 0) return ~a;
    const Pattern b = random_band(random, most, depth - 1);
    return random.below(3) == 0 ? a | b : a & b;
  }
  switch (random.below(8)) {
    case 0:
      return dense();
    case 1:
    case 2:
      return causal();
    case 3:
      return sink(number());
    case 4:
      return window(-1, number());
    case 5:
      return window(number(), -1);
    case 6:
      return random.below(4) == 0 ? documents({number()}) : window(number(), number());
    default:
      return random.below(4) == 0 ? ~causal() : window(number(), 0);
  }
}

TEST_CASE("random bands: rows that are computed are the rows that are listed") {
  base::Random random(5);
  std::array<int, 3> walks{};
  for (int i = 0; i < 600; ++i) {
    Problem problem;
    problem.seq_q = 1 + random.below(700);
    problem.seq_k = random.below(20) == 0 ? 0 : 1 + random.below(900);
    problem.dim_qk = problem.dim_v = 64;
    problem.pattern = random_band(random, problem.seq_k, 2);
    if (random.below(2) == 0) problem.q0 = static_cast<std::int64_t>(random.below(1600)) - 700;
    if (random.below(2) == 0) problem.k0 = static_cast<std::int64_t>(random.below(900)) - 400;
    const auto [rows, columns] = kTiles[static_cast<std::size_t>(i) % kTiles.size()];
    CAPTURE(problem.pattern.to_string());
    CAPTURE(problem.seq_q);
    CAPTURE(problem.seq_k);
    CAPTURE(problem.q_position());
    CAPTURE(problem.k_position());
    ++walks[static_cast<std::size_t>(compare(problem, rows, columns))];
  }
  CHECK(walks[static_cast<std::size_t>(TileOrder::kBand)] > 300);
  CHECK(walks[static_cast<std::size_t>(TileOrder::kRuns)] > 50);
}

TEST_CASE("random patterns: rows of runs are the rows that are listed") {
  std::array<int, 3> walks{};
  for (std::uint64_t index = 0; index < 400; ++index) {
    Problem problem = test::random_problem(123, index);
    CAPTURE(test::text_of(problem));
    const auto [rows, columns] = kTiles[index % kTiles.size()];
    const std::vector<Pattern> branches = problem.pattern.branches();
    for (const Pattern& branch : branches) {
      if (branch.to_string().find("blocks(") != std::string::npos) continue;
      problem.pattern = branch;
      ++walks[static_cast<std::size_t>(compare(problem, rows, columns))];
    }
  }
  for (const int tile_order : walks) CHECK(tile_order > 20);
}

TEST_CASE("rows of shards are runs where their segments leave few") {
  Problem problem;
  problem.seq_q = 400;
  problem.seq_k = 600;
  problem.dim_qk = problem.dim_v = 64;
  problem.pattern = causal() & window(500, 0);
  const pattern::Placement zigzag = {{{100, 200}, {900, 200}}, {{0, 300}, {800, 300}}, {1100, 0}};
  const TileList made = make_tile_list(problem, zigzag, 64, 64, nullptr);
  const TileList listed = make_tile_list(problem, zigzag, 64, 64, nullptr, ListForm::kListed);
  CHECK(made.tile_order == TileOrder::kRuns);
  CHECK(made.row_order == listed.row_order);
  for (std::int64_t row = 0; row < made.row_tiles; ++row) {
    CHECK(made.row_runs(0, row) == listed.row_runs(0, row));
  }
}

TEST_CASE("structured patterns are counted through, scattered ones listed") {
  Problem problem;
  problem.heads = 4;
  problem.seq_q = problem.seq_k = 5000;
  problem.dim_qk = problem.dim_v = 64;
  const auto tile_order_of = [&](const char* text) {
    problem.pattern = Pattern::parse(text);
    return make_tile_list(problem, 128, 64, nullptr).tile_order;
  };
  for (const char* text : {"dense", "causal", "window(511,0)", "window(-1,64) & causal", "sink(9)",
                           "causal & window(1023,0)", "causal | prefix(1000)", "~window(9,-1)",
                           "causal & ~causal", "~dense"}) {
    CAPTURE(text);
    CHECK(tile_order_of(text) == TileOrder::kBand);
  }
  for (const char* text :
       {"causal & (window(511,0) | sink(4))", "window(511,511) | global(128)", "segment(1000,1)",
        "segment(700,4)", "documents([100, 700, 703, 4000])", "causal & documents([1000, 3000])",
        "heads(causal, window(100,0))", "~window(300,300)", "dilated(4) & causal"}) {
    CAPTURE(text);
    CHECK(tile_order_of(text) == TileOrder::kRuns);
  }
  for (const char* text : {"strided(4,1,64)", "random(3,1,64)", "global([5, 900])",
                           "natten(50,100,7)", "dilated(500)", "vertical_slash([5],[9])"}) {
    CAPTURE(text);
    CHECK(tile_order_of(text) == TileOrder::kList);
  }
}

TEST_CASE("a band costs the same whatever the lengths, and its sums are exact") {
  Problem problem;
  problem.heads = 32;
  problem.kv_heads = 8;
  problem.seq_q = problem.seq_k = std::int64_t{1} << 30;
  problem.dim_qk = problem.dim_v = 128;
  const std::int64_t rows = problem.seq_q / 128, columns = problem.seq_k / 64;
  TileList list = make_tile_list(problem, 128, 64, nullptr);
  CHECK(list.full_tiles == rows * columns);
  CHECK(list.device_bytes() == 0);
  CHECK(block_density(problem, 1, 1).value == 1);  // the longest possible rows
  problem.pattern = causal();
  list = make_tile_list(problem, 128, 64, nullptr);
  CHECK(list.partial_tiles == 2 * rows);
  CHECK(list.full_tiles == rows * (rows - 1));
  CHECK(list.longest_row == columns);
  CHECK(list.device_bytes() == 0);
  CHECK(block_density(problem, 128, 128).value == doctest::Approx(0.5));
  const TileCounts counts = count_tiles(problem, 128, 64);
  CHECK(counts.full_tiles == 32 * rows * (rows - 1));
  CHECK(counts.lengths.empty());
  problem.pattern = causal() & ~causal();
  CHECK(make_tile_list(problem, 128, 64, nullptr).partial_tiles == 0);
  CHECK(block_density(problem, 128, 128).value == 0);
  // The tile sizes do not divide one another.
  problem.pattern = causal() & window(9999, 0);
  list = make_tile_list(problem, 128, 96, nullptr);
  const std::int64_t some = 1 << 20;
  problem.seq_q = problem.seq_k = some * 3;
  const TileList shorter = make_tile_list(problem, 128, 96, nullptr, ListForm::kListed);
  // The number of periods of three rows.
  const std::int64_t more = ((std::int64_t{1} << 30) - some * 3) / 384;
  problem.seq_q = problem.seq_k = some * 3 + 384;
  const TileList longer = make_tile_list(problem, 128, 96, nullptr, ListForm::kListed);
  CHECK((std::int64_t{1} << 30) % 384 == some * 3 % 384 + 256);  // two rows are left over
  CHECK(list.full_tiles > shorter.full_tiles + (longer.full_tiles - shorter.full_tiles) * more);
  CHECK(list.full_tiles <
        shorter.full_tiles + (longer.full_tiles - shorter.full_tiles) * (more + 1));
}

TEST_CASE("a record holds two runs of partial, full and partial tiles") {
  const auto back = [](const std::vector<BlockRun>& runs) {
    const auto row = row_of_runs(runs);
    REQUIRE(row.has_value());
    std::vector<BlockRun> tiles;
    for (int i = 0; i < row->count; ++i) {
      add_run({row->column(i), row->column(i) + 1, row->partial(i)}, &tiles);
    }
    CHECK(tiles == runs);
    CHECK(runs_of_row(*row) == runs);
  };
  back({});
  back({{3, 4, true}});
  back({{0, 9, false}});
  back({{2, 3, true}, {3, 7, false}, {7, 9, true}});
  // Adjacent runs.
  back({{2, 3, true}, {3, 7, false}, {7, 9, true}, {9, 11, false}, {11, 12, true}});
  back({{0, 1, false}, {5, 6, true}, {6, 9, false}});
  back({{0, 2, true}, {5, 6, false}, {6, 9, true}});
  CHECK_FALSE(row_of_runs({{0, 1, true}, {2, 3, true}, {4, 5, true}}));
  CHECK_FALSE(
      row_of_runs({{0, 1, false}, {1, 2, true}, {2, 3, false}, {3, 4, true}, {4, 5, false}}));
}

TEST_CASE("a plan says how its rows are walked, and its kernel knows") {
  Problem problem;
  problem.seq_q = problem.seq_k = 1000;
  problem.dim_qk = problem.dim_v = 64;
  problem.pattern = causal();
  const DeviceLimits limits = {{80, '\0'}, 108, 163 * 1024};
  const LaunchPlan plan = make_plan(problem, choose_config(problem, limits), limits);
  CHECK(jit::source_text(plan.spec).find("kTileOrder = 2") != std::string::npos);
  CHECK(std::ranges::any_of(plan.decisions, [](const std::string& line) {
    return line.find("computed from its number") != std::string::npos;
  }));
}

}  // namespace
}  // namespace annulus::attention
