#include "attention/tiles/tile_list.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>

#include "annulus/types.h"
#include "attention/tiles/block_mask.h"
#include "pattern/mask_code.h"
#include "support/random_problem.h"

namespace {

using namespace annulus;
using attention::TileList;

std::shared_ptr<const BlockLayout> layout_in(const Problem& problem) {
  return pattern::emit(problem.pattern, 32, {problem.heads, {}, problem.context()}).layout;
}

// Makes the list tile by tile. tile_runs_test.cc compares shorter forms with this one.
TileList tile_list(const Problem& problem, std::int64_t rows, std::int64_t columns) {
  return attention::make_tile_list(problem, rows, columns, layout_in(problem).get(),
                                   attention::ListForm::kListed);
}

// The bit that a kernel's MaskContext::blocks() reads.
bool mask_bit(const TileList& list, std::int32_t mask, std::int64_t row, std::int64_t column) {
  if (mask < 0) return mask == attention::kTileAllVisible;
  const std::int64_t bit =
      (row >> list.granule_row_shift) * (list.tile_columns >> list.granule_column_shift) +
      (column >> list.granule_column_shift);
  return (list.mask_words[static_cast<std::size_t>(mask + bit / 32)] >> (bit % 32)) & 1u;
}

// The properties of one tile, found from single pairs.
struct TileTruth {
  bool any = false;
  bool all = true;
};

TileTruth look(const Problem& p, const TileList& list, std::int64_t head, std::int64_t row_tile,
               std::int64_t column_tile, const BlockLayout* layout, std::int32_t mask,
               std::int64_t* pairs) {
  TileTruth truth;
  const Pattern layout_alone = layout ? blocks(std::make_shared<BlockLayout>(*layout)) : dense();
  for (std::int64_t i = 0; i < list.tile_rows; ++i) {
    const std::int64_t row = row_tile * list.tile_rows + i;
    if (row >= p.seq_q) break;
    for (std::int64_t j = 0; j < list.tile_columns; ++j) {
      const std::int64_t key = column_tile * list.tile_columns + j;
      if (key >= p.seq_k) break;
      const std::int64_t q = p.q_position() + row;
      const std::int64_t k = p.k_position() + key;
      const bool visible = p.pattern.visible(head, q, k, p.context());
      truth.any = truth.any || visible;
      truth.all = truth.all && visible;
      *pairs += visible;
      if (layout && mask != INT32_MAX &&
          mask_bit(list, mask, i, j) != layout_alone.visible(head, q, k)) {
        FAIL("mask bit of row " << row << " key " << key);
      }
    }
  }
  return truth;
}

void check(const Problem& p, std::int64_t tile_rows, std::int64_t tile_columns) {
  const TileList list = tile_list(p, tile_rows, tile_columns);
  const auto layout = layout_in(p);
  REQUIRE(static_cast<std::int64_t>(list.row_begin.size()) == list.lists * (list.row_tiles + 1));
  // Masks without information are left out, either all or none.
  const bool has_masks = std::ranges::any_of(list.tile_masks, [](int mask) { return mask != -1; });
  REQUIRE(list.tile_masks.size() == (has_masks ? list.tiles.size() : 0));
  CHECK((layout || !has_masks));
  std::int64_t pairs = 0;
  for (std::int64_t head = 0; head < p.heads; ++head) {
    const auto begin_of = [&](std::int64_t row) {
      return static_cast<std::size_t>(list.row_begin[static_cast<std::size_t>(
          list.list_of(head) * (list.row_tiles + 1) + row)]);
    };
    for (std::int64_t row = 0; row < list.row_tiles; ++row) {
      std::size_t at = begin_of(row);
      for (std::int64_t column = 0; column < list.column_tiles; ++column) {
        const bool kept = at < begin_of(row + 1) && list.tiles[at] / 2 == column;
        const bool partial = kept && (list.tiles[at] & 1);
        const std::int32_t mask = !layout || !partial ? INT32_MAX
                                  : has_masks         ? list.tile_masks[at]
                                                      : -1;
        const TileTruth truth = look(p, list, head, row, column, layout.get(), mask, &pairs);
        if (kept != truth.any)
          FAIL("head " << head << " tile " << row << "," << column << " kept " << kept);
        if (kept && !partial && !truth.all) FAIL("tile " << row << "," << column << " is not full");
        at += kept;
      }
      CHECK(at == begin_of(row + 1));  // in ascending order, and none beyond the last column
    }
    const auto order = list.row_order.begin() + list.list_of(head) * list.row_tiles;
    std::vector<std::int32_t> rows(order, order + list.row_tiles);
    CHECK(std::is_sorted(rows.begin(), rows.end(), [&](std::int32_t a, std::int32_t b) {
      return begin_of(a + 1) - begin_of(a) > begin_of(b + 1) - begin_of(b);
    }));
    std::sort(rows.begin(), rows.end());
    for (std::size_t i = 0; i < rows.size(); ++i) CHECK(rows[i] == static_cast<std::int32_t>(i));
  }
  std::int64_t counted = 0;
  for (std::int64_t head = 0; head < p.heads; ++head) {
    counted += pattern::visible_pairs(p.pattern, head, attention::extent_of(p), p.context());
  }
  CHECK(counted == pairs);
  CHECK(list.full_tiles + list.partial_tiles == static_cast<std::int64_t>(list.tiles.size()));
}

Problem problem_of(std::int64_t seq_q, std::int64_t seq_k, const Pattern& pattern) {
  Problem problem;
  problem.heads = 2;
  problem.seq_q = seq_q;
  problem.seq_k = seq_k;
  problem.dim_qk = problem.dim_v = 64;
  problem.pattern = pattern;
  return problem;
}

TEST_CASE("random patterns: every visible pair is in a kept tile and full tiles are full") {
  static constexpr std::array<std::pair<int, int>, 5> kTiles = {
      std::pair{128, 64}, {64, 64}, {64, 32}, {48, 80}, {16, 128}};
  for (std::uint64_t index = 0; index < 120; ++index) {
    Problem problem = test::random_problem(77, index);
    CAPTURE(test::text_of(problem));
    const auto [rows, columns] = kTiles[index % kTiles.size()];
    const std::vector<Pattern> branches = problem.pattern.branches();
    for (const Pattern& branch : branches) {
      problem.pattern = branch;
      check(problem, rows, columns);
    }
  }
}

TEST_CASE("causal has full tiles below the diagonal and no tile above it") {
  const TileList list = tile_list(problem_of(512, 512, causal()), 128, 64);
  CHECK(list.row_tiles == 4);
  CHECK(list.tiles.size() == 2 + 4 + 6 + 8);
  CHECK(list.partial_tiles == 8);
  CHECK(list.longest_row == 8);
  CHECK(list.row_order == std::vector<std::int32_t>{3, 2, 1, 0});
  CHECK(list.head_list.empty());
}

TEST_CASE("lengths of zero make empty lists") {
  CHECK(tile_list(problem_of(0, 100, dense()), 64, 64).row_tiles == 0);
  const TileList list = tile_list(problem_of(100, 0, dense()), 64, 64);
  CHECK(list.row_tiles == 2);
  CHECK(list.tiles.empty());
  CHECK(list.empty_rows == 2);
  CHECK(list.row_begin == std::vector<std::int64_t>{0, 0, 0});
}

BlockLayout layout_of(std::int64_t rows, std::int64_t columns, std::int64_t heads,
                      std::vector<std::int64_t> indptr, std::vector<std::int32_t> indices) {
  BlockLayout layout;
  layout.block_rows = rows;
  layout.block_columns = columns;
  layout.seq_q = layout.seq_k = 256;
  layout.heads = heads;
  layout.indptr = std::move(indptr);
  layout.indices = std::move(indices);
  return layout;
}

TEST_CASE("heads with equal rows share a list") {
  Problem problem =
      problem_of(256, 256, blocks(layout_of(128, 128, 2, {0, 1, 2, 3, 4}, {0, 1, 0, 1})));
  TileList list = tile_list(problem, 64, 64);
  CHECK(list.lists == 1);
  CHECK(list.head_list.empty());
  CHECK(list.partial_tiles == 0);
  CHECK(list.full_tiles == 8);
  problem.pattern = blocks(layout_of(128, 128, 2, {0, 1, 2, 3, 4}, {0, 1, 1, 1}));
  list = tile_list(problem, 64, 64);
  CHECK(list.lists == 2);
  CHECK(list.head_list == std::vector<std::int32_t>{0, 1});
  problem.heads = problem.kv_heads = 3;
  CHECK_THROWS_AS(tile_list(problem, 64, 64), Error);
}

TEST_CASE("a head whose tiles and masks are those of an earlier one leaves no trace") {
  const std::vector<std::int32_t> a = {0, 3, 5, 6},
                                  b = {0, 2, 5, 7};  // blocks of 32 x 32 in tiles of 64 x 64
  const auto list_of = [&](std::initializer_list<std::vector<std::int32_t>> heads) {
    std::vector<std::int64_t> indptr = {0};
    std::vector<std::int32_t> indices;
    for (const std::vector<std::int32_t>& head : heads) {
      for (std::int32_t row = 0; row < 8; ++row) {
        for (const std::int32_t column : head) indices.push_back((column + row / 3) % 8);
        std::sort(indices.end() - std::ssize(head), indices.end());
        indptr.push_back(std::ssize(indices));
      }
    }
    Problem problem =
        problem_of(256, 256, blocks(layout_of(32, 32, std::ssize(heads), indptr, indices)));
    problem.heads = problem.kv_heads = std::ssize(heads);
    return tile_list(problem, 64, 64);
  };
  const TileList two = list_of({a, b}), four = list_of({a, b, a, b});
  REQUIRE(two.lists == 2);
  CHECK(four.lists == 2);
  CHECK(four.head_list == std::vector<std::int32_t>{0, 1, 0, 1});
  CHECK(two.mask_words.size() > 8);
  CHECK(std::tie(four.row_begin, four.tiles, four.tile_masks, four.mask_words, four.row_order) ==
        std::tie(two.row_begin, two.tiles, two.tile_masks, two.mask_words, two.row_order));
  CHECK(four.full_tiles == two.full_tiles);
  CHECK(four.partial_tiles == two.partial_tiles);
  CHECK(list_of({a, a, b}).head_list == std::vector<std::int32_t>{0, 0, 1});
}

TEST_CASE("heads that cycle share the lists of their cycle") {
  Problem problem = problem_of(256, 256, heads({causal(), dense()}));
  problem.heads = problem.kv_heads = 5;
  TileList list = tile_list(problem, 64, 64);
  CHECK(list.lists == 2);
  CHECK(list.head_list == std::vector<std::int32_t>{0, 1, 0, 1, 0});
  // The heads differ, but not in tiles of 64, so their lists are equal.
  problem.pattern = segment(64, 3);
  list = tile_list(problem, 64, 64);
  CHECK(list.lists == 1);
  CHECK(list.head_list.empty());
  problem.pattern = random(1, 5, 64);
  list = tile_list(problem, 64, 64);
  REQUIRE(list.head_list.size() == 5);
  for (std::int64_t head = 0; head < 5; ++head) {
    for (std::int64_t row = 0; row < 4; ++row) {
      const auto at = static_cast<std::size_t>(
          list.row_begin[static_cast<std::size_t>(list.list_of(head) * 5 + row)]);
      const auto column = static_cast<std::int64_t>(list.tiles[at] / 2);
      CHECK(problem.pattern.visible(head, row * 64, column * 64, problem.context()));
    }
  }
}

TEST_CASE("granules follow block sizes, offsets and the end of the layout") {
  const BlockLayout layout = layout_of(64, 32, 1, {0, 1, 2, 3, 4}, {0, 1, 2, 3});
  Problem problem = problem_of(256, 256, blocks(layout));
  TileList list = tile_list(problem, 128, 128);
  CHECK(list.granule_row_shift == 6);
  CHECK(list.granule_column_shift == 5);
  CHECK(list.mask_words.size() == list.tiles.size());  // 2 x 4 bits each
  problem.q0 = 8;
  list = tile_list(problem, 128, 128);
  CHECK(list.granule_row_shift == 3);
  problem.seq_k = 300;  // the layout ends at 256, inside the third tile at the edge
  problem.k0 = -4;
  list = tile_list(problem, 128, 128);
  CHECK(list.granule_column_shift == 2);
  check(problem, 128, 128);
}

TEST_CASE("a list that would not fit is refused before memory runs out") {
  const Problem problem = problem_of(std::int64_t{1} << 30, std::int64_t{1} << 30, dense());
  try {
    tile_list(problem, 128, 64);
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kUnsupported);
    CHECK(std::string(error.what()).find("tiles of 128 x 64") != std::string::npos);
  }
  // The work does not depend on the density of the problem.
  CHECK(attention::block_density(problem, 1 << 20, 1 << 20).value == 1.0);
}

TEST_CASE("block density counts kept blocks of any size") {
  const Problem problem = problem_of(512, 512, causal());
  CHECK(attention::block_density(problem, 128, 128).value == doctest::Approx(10.0 / 16));
  CHECK(attention::block_density(problem, 1, 1).value == doctest::Approx(513.0 / 1024));
  CHECK(attention::block_density(problem_of(0, 5, dense()), 8, 8).value == 0.0);
  CHECK_THROWS_AS(attention::block_density(problem, 0, 8), Error);
}

}  // namespace
