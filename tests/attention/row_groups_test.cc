// Rows that are computed from their numbers, compared with rows that are classified one by one.

#include "attention/tiles/row_groups.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>

#include "attention/plan/group.h"
#include "attention/plan/plan.h"
#include "attention/tiles/pattern_facts.h"
#include "attention/tiles/tile_counts.h"
#include "attention/tiles/tile_grid.h"
#include "attention/tiles/tile_list.h"
#include "attention/tiles/tile_runs.h"
#include "support/random_problem.h"

namespace annulus::attention {
namespace {

using kernels::RowGroup;

constexpr std::array<std::pair<int, int>, 8> kTileSizes = {
    std::pair{128, 64}, {64, 64}, {64, 96}, {48, 80}, {16, 128}, {64, 112}, {1, 7}, {256, 32}};

Problem runs_problem(std::int64_t seq_q, std::int64_t seq_k, const Pattern& pattern) {
  Problem problem;
  problem.seq_q = seq_q;
  problem.seq_k = seq_k;
  problem.dim_qk = problem.dim_v = 64;
  problem.pattern = pattern;
  return problem;
}

// Compares every row, every place of the order and every sum. Returns whether there are groups.
bool compare_groups(const Pattern& pattern, const pattern::Placement& placement, std::int64_t head,
                    std::int64_t rows, std::int64_t columns) {
  pattern::Classifier classifier(pattern, placement, rows, columns);
  const auto made = find_groups(classifier, head);
  if (!made) return false;
  std::vector<bool> found(static_cast<std::size_t>(classifier.rows()));
  std::vector<bool> placed(found.size());
  RowSums sums;
  sums.shortest_row = classifier.columns();
  for (const RowGroup& group : made->groups) {
    for (int row = group.row; row < group.row + group.rows; ++row) {
      CAPTURE(row);
      REQUIRE(group.has_row(row));
      const auto& runs = classifier.row(head, row);
      REQUIRE(runs_of_row(group.runs_of(made->runs.data(), row)) == runs);
      found[static_cast<std::size_t>(row)] = true;
      std::int64_t length = 0;
      for (const pattern::BlockRun& run : runs) {
        (run.partial ? sums.partial_tiles : sums.full_tiles) += run.end - run.begin;
        length += run.end - run.begin;
      }
      sums.longest_row = std::max(sums.longest_row, length);
      sums.shortest_row = std::min(sums.shortest_row, length);
      sums.empty_rows += length == 0;
    }
    for (int place = group.order; place < group.order + group.rows; ++place) {
      REQUIRE(group.has_place(place));
      REQUIRE(group.has_row(group.row_at(place)));
      placed[static_cast<std::size_t>(place)] = true;
    }
  }
  CHECK(std::ranges::all_of(found, [](bool one) { return one; }));
  CHECK(std::ranges::all_of(placed, [](bool one) { return one; }));
  if (made->groups.empty()) return true;
  const RowSums of_groups = made->sums();
  CHECK(of_groups.full_tiles == sums.full_tiles);
  CHECK(of_groups.partial_tiles == sums.partial_tiles);
  CHECK(of_groups.longest_row == sums.longest_row);
  CHECK(of_groups.shortest_row == sums.shortest_row);
  CHECK(of_groups.empty_rows == sums.empty_rows);
  return true;
}

// Bands, global tokens at the beginning and in the middle, prefixes, and parts of the sequence.
Pattern random_runs(base::Random& random, std::int64_t most, int depth) {
  const auto number = [&] {
    return static_cast<std::int64_t>(random.below(static_cast<std::uint32_t>(most)));
  };
  if (depth > 0 && random.below(3) != 0) {
    const Pattern a = random_runs(random, most, depth - 1);
    if (random.below(8) == 0) return ~a;
    const Pattern b = random_runs(random, most, depth - 1);
    return random.below(2) == 0 ? a | b : a & b;
  }
  switch (random.below(9)) {
    case 0:
      return causal();
    case 1:
      return global(number() / 4);
    case 2:
      return global({number(), number() / 2});
    case 3:
      return sink(number() / 3);
    case 4:
      return window(number() / 4, number() / 4);
    case 5:
      return window(number() / 2, 0);
    case 6:
      return random.below(3) == 0 ? documents({number()}) : window(-1, number());
    case 7:
      return random.below(3) == 0 ? segment(1 + number(), 2) : window(number(), -1);
    default:
      return random.below(4) == 0 ? prefix(number()) : window(number() / 8, number() / 8);
  }
}

TEST_CASE("random runs: rows that follow from their numbers are the rows that are classified") {
  base::Random random(17);
  int found = 0;
  for (int i = 0; i < 1500; ++i) {
    const std::int64_t seq_q = 1 + random.below(3000), seq_k = 1 + random.below(3000);
    const Pattern pattern = random_runs(random, seq_k, 2);
    const auto [rows, columns] = kTileSizes[static_cast<std::size_t>(i) % kTileSizes.size()];
    std::int64_t q = seq_k - seq_q, k = 0;
    if (random.below(2) == 0) q = static_cast<std::int64_t>(random.below(4000)) - 1500;
    if (random.below(3) == 0) k = static_cast<std::int64_t>(random.below(2000)) - 900;
    CAPTURE(pattern.to_string());
    CAPTURE(seq_q);
    CAPTURE(seq_k);
    CAPTURE(q);
    CAPTURE(k);
    CAPTURE(rows);
    CAPTURE(columns);
    const pattern::Extent extent = {seq_q, seq_k, q, k};
    found +=
        compare_groups(pattern, pattern::Placement::of(extent), random.below(2), rows, columns);
  }
  CHECK(found > 600);
}

TEST_CASE("random patterns of all leaves: rows that follow from their numbers") {
  int found = 0;
  for (std::uint64_t index = 0; index < 1500; ++index) {
    const Problem problem = test::random_problem(321, index);
    CAPTURE(test::text_of(problem));
    const auto [rows, columns] = kTileSizes[index % kTileSizes.size()];
    for (const Pattern& branch : problem.pattern.branches()) {
      if (branch.batches() > 1 || !has_runs(branch)) continue;
      // Longer than the case, as if its lengths were numbers of blocks.
      pattern::Extent extent = extent_of(problem);
      extent.seq_q = extent.seq_q * 5 + 3;
      extent.seq_k *= 5;
      found += compare_groups(branch, pattern::Placement::of(extent), 0, rows, columns);
    }
  }
  CHECK(found > 300);
}

TEST_CASE("windows with global tokens: every size of tile, offset and ragged end") {
  int found = 0;
  for (const char* text :
       {"causal & (window(1023, 0) | global(256))", "window(511, 511) | global(256)",
        "causal & (window(100, 0) | global(1))", "window(30, 50) | global(777)", "global(300)",
        "causal & (window(4095, 0) | sink(4))", "window(200, 200) | sink(1000)",
        "causal & (window(0, 0) | global(0))", "window(300, 10) | (sink(2000) & ~sink(1900))",
        "causal & (window(20, 0) | global([1000, 1001, 1002]))",
        "heads(causal, window(100, 0) | global(100))", "documents([3000, 7000])"}) {
    const Pattern pattern = Pattern::parse(text);
    for (const auto& [rows, columns] : kTileSizes) {
      for (const std::int64_t seq : {std::int64_t{200}, std::int64_t{9000}, std::int64_t{20011}}) {
        if (rows == 1 && seq > 9000) continue;
        for (const std::int64_t q : {std::int64_t{0}, std::int64_t{77}, std::int64_t{-3001}}) {
          CAPTURE(text);
          CAPTURE(rows);
          CAPTURE(columns);
          CAPTURE(seq);
          CAPTURE(q);
          const pattern::Extent extent = {seq, seq + 100, q, 0};
          found += compare_groups(pattern, pattern::Placement::of(extent), 0, rows, columns);
        }
      }
    }
  }
  CHECK(found > 500);
}

// A list with groups gives the same answers as the list with records.
TEST_CASE("a list of groups answers as the list of its rows") {
  int grouped = 0;
  for (const char* text :
       {"causal & (window(1023, 0) | global(256))", "window(511, 511) | global(256)", "global(256)",
        "heads(causal & (window(500, 0) | sink(64)), window(900, 900) | global(64))",
        "causal & (window(4095, 0) | sink(4))", "documents([20000])", "random(2, 1, 64)"}) {
    for (const auto& [rows, columns] : kTileSizes) {
      if (rows < 16) continue;
      for (const std::int64_t seq : {std::int64_t{40000}, std::int64_t{65536}}) {
        CAPTURE(text);
        CAPTURE(rows);
        CAPTURE(columns);
        Problem problem = runs_problem(seq, seq, Pattern::parse(text));
        problem.heads = 3;
        const TileList list = make_tile_list(problem, rows, columns, nullptr, ListForm::kInMemory);
        const TileList records =
            make_tile_list(problem, rows, columns, nullptr, ListForm::kRecords);
        CHECK(records.groups.empty());
        REQUIRE(list.lists == records.lists);
        CHECK(list.head_list == records.head_list);
        CHECK(list.tile_order == records.tile_order);
        CHECK(list.full_tiles == records.full_tiles);
        CHECK(list.partial_tiles == records.partial_tiles);
        CHECK(list.longest_row == records.longest_row);
        CHECK(list.empty_rows == records.empty_rows);
        CHECK(tile_density(problem, list).value == tile_density(problem, records).value);
        if (list.groups.empty()) {
          CHECK(list.row_order == records.row_order);
          continue;
        }
        ++grouped;
        CHECK(4 * list.device_bytes() <= records.device_bytes());
        for (std::int64_t which = 0; which < list.lists; ++which) {
          std::vector<bool> launched(static_cast<std::size_t>(list.row_tiles));
          for (std::int64_t row = 0; row < list.row_tiles; ++row) {
            REQUIRE(list.record(which, row) == records.record(which, row));
            launched[static_cast<std::size_t>(list.row_at(which, row))] = true;
          }
          CHECK(std::ranges::all_of(launched, [](bool one) { return one; }));
          // The longest row comes first, or a row that is one tile shorter.
          CHECK(list.row_length(which, list.row_at(which, 0)) + 1 >=
                records.row_length(which, records.row_at(which, 0)));
        }
        const TileCounts a = count_tiles(list, problem), b = count_tiles(records, problem);
        const TileCounts c = count_tiles(problem, rows, columns);
        CHECK(std::tie(a.lengths, a.copies, a.ctas, a.full_tiles, a.partial_tiles, a.longest_row) ==
              std::tie(b.lengths, b.copies, b.ctas, b.full_tiles, b.partial_tiles, b.longest_row));
        if (seq % rows == 0 && seq % columns == 0) CHECK(c.full_tiles == b.full_tiles);
        CHECK(c.tiles() == b.tiles());
      }
    }
  }
  CHECK(grouped > 40);
}

TEST_CASE("lists of 2^30 tokens take no memory to speak of, and their sums are exact") {
  const std::int64_t seq = std::int64_t{1} << 30, rows = seq / 128;
  Problem problem =
      runs_problem(seq, seq, Pattern::parse("causal & (window(1023, 0) | global(256))"));
  TileList list = make_plan_tiles(problem, placement_of(problem), 128, 128, nullptr);
  CHECK(list.tile_order == kernels::TileOrder::kRuns);
  CHECK(list.device_bytes() < 4096);
  // Row r >= 10 sees two tiles of global tokens and nine tiles of the window, of which the first
  // and the last are partial. Earlier rows see all causal keys, and their last tile is partial.
  CHECK(list.full_tiles == (rows - 10) * 9 + 9 * 10 / 2);
  CHECK(list.longest_row == 11);
  CHECK(list.row_length(0, rows - 1) == 11);
  CHECK(list.row_at(0, 0) >= 10);
  const TileCounts counts = count_tiles(problem, 128, 128);
  CHECK(counts.full_tiles == list.full_tiles);
  CHECK(counts.partial_tiles == list.partial_tiles);
  CHECK(counts.lengths.empty());
  CHECK(block_density(problem, 128, 128).value ==
        doctest::Approx(static_cast<double>(list.kept_tiles()) / static_cast<double>(rows) /
                        static_cast<double>(rows)));

  problem.pattern = Pattern::parse("window(511, 511) | global(256)");
  list = make_plan_tiles(problem, placement_of(problem), 128, 64, nullptr);
  CHECK(list.device_bytes() < 4096);
  CHECK(list.longest_row == seq / 64);
  CHECK(list.row_at(0, 0) == 0);
  CHECK(list.row_at(0, 1) == 1);
}

TEST_CASE("rows of documents of unlike lengths keep the order by length") {
  Problem problem =
      runs_problem(60000, 60000, Pattern::parse("causal & documents([100, 20000, 45000])"));
  const TileList list = make_tile_list(problem, 64, 64, nullptr);
  CHECK(list.groups.empty());
  for (std::int64_t place = 1; place < list.row_tiles; ++place) {
    REQUIRE(list.row_length(0, list.row_at(0, place)) <=
            list.row_length(0, list.row_at(0, place - 1)));
  }
}

// The kernel's clusters of two rows need pairs of the launch order that are neighbours with the
// same tiles. With groups, a few pairs of each group are checked.
TEST_CASE("pairs of rows are alike with groups where they are with records") {
  int alike = 0, grouped = 0;
  for (const char* text : {"global(256)", "global(128)", "sink(512) | global(384)",
                           "window(511, 511) | global(256)", "dense"}) {
    for (const std::int64_t seq : {std::int64_t{40000}, std::int64_t{65536}}) {
      for (const std::int64_t rows : {64, 128}) {
        Problem problem = runs_problem(seq, seq, Pattern::parse(text));
        const auto config =
            parse_config(rows == 64 ? "wgmma m64 n128 w4 s2 c2" : "wgmma m128 n128 w8 s2 c2");
        if (!config) continue;
        KernelFeatures features;
        const auto group = [&](ListForm form) {
          const TileList list = make_tile_list(problem, rows, 128, nullptr, form);
          grouped += !list.groups.empty();
          return group_of(*config, problem, list, features).group.has_value();
        };
        const bool with_records = group(ListForm::kRecords);
        CHECK(group(ListForm::kInMemory) == with_records);
        alike += with_records;
      }
    }
  }
  CHECK(alike > 0);
  CHECK(grouped > 0);
}

}  // namespace
}  // namespace annulus::attention
