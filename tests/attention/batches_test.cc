// Batches that see different keys: their lists, their counts and their kernels.

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "annulus/types.h"
#include "attention/kernels/kernel_source.h"
#include "attention/plan/choose_config.h"
#include "attention/plan/plan.h"
#include "attention/tiles/planes.h"
#include "attention/tiles/tile_counts.h"
#include "attention/tiles/tile_grid.h"
#include "attention/tiles/tile_list.h"
#include "base/random.h"
#include "support/random_problem.h"

namespace annulus::attention {
namespace {

Problem problem_of(std::int64_t batch, const Pattern& pattern, std::int64_t tokens = 300) {
  Problem problem;
  problem.batch = batch;
  problem.heads = 4;
  problem.kv_heads = 2;
  problem.seq_q = problem.seq_k = tokens;
  problem.dim_qk = problem.dim_v = 64;
  problem.pattern = pattern;
  return problem;
}

Problem alone(const Problem& problem, std::int64_t batch) {
  Problem one = problem;
  one.batch = 1;
  one.pattern = problem.pattern.of_batch(batch);
  return one;
}

DeviceLimits limits_of(const char* arch) { return {jit::parse_arch(arch), 132, 163 * 1024}; }

LaunchPlan plan_of(const Problem& problem, const char* arch = "sm_90a", const PlanForm& form = {}) {
  const DeviceLimits limits = limits_of(arch);
  return make_plan(problem, choose_config(problem, limits), limits, form);
}

// Checks that each head of each batch has the rows that it would have alone, in any form of lists.
void check_rows(const Problem& problem, const TileList& list, ListForm form) {
  for (std::int64_t batch = 0; batch < problem.batch; ++batch) {
    const TileList one =
        make_tile_list(alone(problem, batch), list.tile_rows, list.tile_columns, nullptr, form);
    for (std::int64_t head = 0; head < problem.heads; ++head) {
      for (std::int64_t row = 0; row < list.row_tiles; ++row) {
        if (list.row_runs(list.list_of(head, batch), row) != one.row_runs(one.list_of(head), row)) {
          FAIL(problem.pattern.to_string()
               << " batch " << batch << " head " << head << " row " << row);
        }
      }
    }
  }
}

// A random pattern whose batches differ. It has no layouts, so that equal lists come only from
// equal patterns.
Pattern random_turns(base::Random& random, std::int64_t tokens) {
  const auto inner = [&]() -> Pattern {
    for (;;) {
      const Pattern made = test::random_pattern(random, tokens, tokens, 4, 2);
      if (made.to_string().find("blocks(\"") == std::string::npos) return made;
    }
  };
  const Pattern turns = random.below(2) == 0
                            ? batches({inner(), inner()})
                            : batches({inner(), heads({inner(), inner()}), causal()});
  return random.below(3) == 0 ? heads({turns, inner()}) : turns;
}

TEST_CASE("each batch has the rows of its own expression") {
  base::Random random(81);
  for (int i = 0; i < 120; ++i) {
    const std::int64_t tokens = 1 + random.below(400);
    const Problem problem = problem_of(1 + random.below(5), random_turns(random, tokens), tokens);
    CAPTURE(problem.pattern.to_string());
    for (const ListForm form : {ListForm::kShortest, ListForm::kInMemory, ListForm::kListed}) {
      const TileList list = make_tile_list(problem, 64, 64, nullptr, form);
      check_rows(problem, list, form);
    }
  }
}

TEST_CASE("counts and densities are the sums of what each batch has alone") {
  base::Random random(82);
  for (int i = 0; i < 150; ++i) {
    const std::int64_t tokens = 65 + random.below(300);
    const Problem problem = problem_of(1 + random.below(7), random_turns(random, tokens), tokens);
    CAPTURE(problem.pattern.to_string());
    CAPTURE(problem.batch);
    // If a batch alone is a band, tiles at the ends of the tensors may count as full. In a mix of
    // batches they may count as partial. So only the sums of both classes are equal.
    std::int64_t tiles_of_all = 0, longest = 0;
    double tiles = 0, blocks = 0, pairs = 0;
    for (std::int64_t batch = 0; batch < problem.batch; ++batch) {
      const Problem one = alone(problem, batch);
      const TileCounts counts = count_tiles(one, 64, 64);
      tiles_of_all += counts.tiles();
      longest = std::max(longest, counts.longest_row);
      tiles += tile_density(one, make_plan_tiles(one, placement_of(one), 64, 64, nullptr)).value;
      blocks += block_density(one, 48, 32).value;
      pairs += pair_density(one).value;
    }
    const auto mean = [&](double sum) {
      return doctest::Approx(sum / static_cast<double>(problem.batch)).epsilon(1e-12);
    };
    const TileList list = make_plan_tiles(problem, placement_of(problem), 64, 64, nullptr);
    CHECK(tile_density(problem, list).value == mean(tiles));
    CHECK(block_density(problem, 48, 32).value == mean(blocks));
    CHECK(pair_density(problem).value == mean(pairs));
    for (const TileCounts& counts : {count_tiles(problem, 64, 64), count_tiles(list, problem)}) {
      CHECK(counts.tiles() == tiles_of_all);
      CHECK(counts.longest_row == longest);
      CHECK(counts.ctas == problem.batch * problem.heads * list.row_tiles);
      const auto named =
          std::accumulate(counts.lengths.begin(), counts.lengths.end(), std::int64_t{0});
      CHECK(named * counts.copies == tiles_of_all);
    }
    // No tile is lost if rows are split into parts.
    if (list.longest_row < 2) continue;
    const KvSplit split = kv_splits(list, 1, 1);
    CHECK(count_parts(list, split, problem).tiles() == tiles_of_all);
  }
}

TEST_CASE("batches and heads that see the same share a list") {
  Problem problem = problem_of(5, batches({causal(), window(40, 0), causal()}));
  TileList list = make_tile_list(problem, 64, 64, nullptr);
  CHECK(list.lists == 2);
  CHECK(list.batches == 3);
  CHECK(list.head_list == std::vector<std::int32_t>{0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0});
  // If there are fewer batches than expressions, only the expressions in use count.
  problem.batch = 2;
  list = make_tile_list(problem, 64, 64, nullptr);
  CHECK(list.head_list == std::vector<std::int32_t>{0, 0, 0, 0, 1, 1, 1, 1});
  problem.batch = 1;
  list = make_tile_list(problem, 64, 64, nullptr);
  CHECK(list.tile_order == kernels::TileOrder::kBand);
  problem.batch = 0;
  CHECK(make_tile_list(problem, 64, 64, nullptr).lists == 1);
  CHECK(count_tiles(problem, 64, 64).tiles() == 0);
  CHECK(tile_density(problem, list).value > 0);
  // Heads inside batches and batches inside heads. Both contain equal lists.
  problem = problem_of(2, batches({heads({causal(), sink(70)}), sink(70)}));
  list = make_tile_list(problem, 64, 64, nullptr);
  CHECK(list.lists == 2);
  CHECK(list.head_list == std::vector<std::int32_t>{0, 1, 0, 1, 1, 1, 1, 1});
  problem.pattern = heads({batches({causal(), sink(70)}), sink(70)});
  list = make_tile_list(problem, 64, 64, nullptr);
  CHECK(list.head_list == std::vector<std::int32_t>{0, 1, 0, 1, 1, 1, 1, 1});
  // The batches differ, but not in tiles of 64, so their lists are equal.
  problem.pattern = batches({segment(64, 3), segment(64, 4)});
  list = make_tile_list(problem, 64, 64, nullptr);
  CHECK(list.lists == 1);
  CHECK(list.head_list.empty());
  CHECK(list.batches == 1);
  // Heads that are equal in every batch count once, and so do heads that share K and V.
  problem = problem_of(6, batches({causal(), window(40, 0)}));
  const TileCounts counts = count_tiles(make_tile_list(problem, 64, 64, nullptr), problem);
  CHECK(counts.copies == 12);
  CHECK(std::ssize(counts.lengths) == 10);
}

TEST_CASE("the kernel of batches that differ is told how many, and no other kernel changes") {
  const auto source = [](std::int64_t batch, const char* text) {
    const Problem problem = problem_of(batch, Pattern::parse(text));
    const DeviceLimits limits = limits_of("sm_90a");
    const Choice choice = forced_config(problem, limits, "wgmma m64 n64 w4 s2 q b2");
    return jit::source_text(make_plan(problem, choice, limits).spec);
  };
  const std::string turns = source(4, "batches(causal, window(40, 0))");
  CHECK(turns.find("kDistinctBatches = 2") != std::string::npos);
  CHECK(turns.find("m.batch_turn(2) == 0 ?") != std::string::npos);
  CHECK(source(9, "batches(causal, window(70, 0))") == turns);
  CHECK(source(2, "batches(causal, window(70, 0))") == turns);
  // A single batch, and batches that are equal, have the same kernel as alone.
  CHECK(source(1, "batches(causal, window(40, 0))") == source(1, "causal"));
  CHECK(source(7, "batches(causal, causal)") == source(7, "causal"));
  for (const char* text : {"causal", "heads(causal, dense)", "documents([0, 70])", "dense"}) {
    CAPTURE(text);
    CHECK(source(3, text).find("kDistinctBatches") == std::string::npos);
    CHECK(source(3, text).find("batch_turn") == std::string::npos);
  }
}

TEST_CASE("what joins the parts of rows finds the list of the batch as well") {
  Problem problem = problem_of(3, batches({dense(), sink(70)}), 900);
  problem.seq_q = 64;
  const LaunchPlan plan = plan_of(problem, "sm_80", {.kv_splits = 3});
  REQUIRE_FALSE(plan.split.empty());
  CHECK(jit::source_text(plan.combine_spec).find("kDistinctBatches = 2") != std::string::npos);
  problem.pattern = dense();
  const LaunchPlan same = plan_of(problem, "sm_80", {.kv_splits = 3});
  CHECK(jit::source_text(same.combine_spec).find("kDistinctBatches") == std::string::npos);
}

TEST_CASE("heads work together in all batches or in none") {
  Problem problem = problem_of(2, batches({causal(), heads({causal(), dense()})}));
  const DeviceLimits limits = limits_of("sm_90a");
  const Choice choice = forced_config(problem, limits, "wgmma m64 n64 w8 s2 b2 h2");
  CHECK_THROWS_WITH_AS(make_plan(problem, choice, limits),
                       doctest::Contains("heads 0 and 1 differ in what they see"), Error);
  problem.pattern = batches({causal(), window(40, 0)});
  CHECK(make_plan(problem, choice, limits).group == WorkGroup{.rows = 1, .heads = 2});
}

TEST_CASE("plans say what each batch computes") {
  const Problem problem = problem_of(4, batches({dense(), sink(128)}), 1024);
  const LaunchPlan plan = plan_of(problem);
  CHECK(std::ranges::any_of(plan.decisions, [](const std::string& line) {
    return line.find("repeat after 2") != std::string::npos &&
           line.find("batches 0 to 1 are computed 1.0000, 0.1250") != std::string::npos;
  }));
}

TEST_CASE("a cache tells batches apart") {
  TileCache cache({});
  const Problem two = problem_of(2, batches({causal() | sink(9), sink(70)}));
  Problem five = two;
  five.batch = 5;
  Problem turned = two;
  turned.pattern = batches({sink(70), causal() | sink(9)});
  const auto get = [&](const Problem& problem) {
    return cache.get(problem, placement_of(problem), 64, 64, nullptr);
  };
  CHECK(get(two) == get(two));
  CHECK(get(two) == get(five));  // both have two different batches
  CHECK(get(two) != get(turned));
}

}  // namespace
}  // namespace annulus::attention
