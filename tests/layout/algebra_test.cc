#include <doctest/doctest.h>

#include "layout/sample_layout.h"
#include "pattern/classify.h"

namespace annulus {
namespace {

using base::Random;
using test::between;
using test::code_of;
using test::state_at;

// Compares every pair, block by block, with a rule on the states of the operands.
template <typename Rule>
void check_pairs(const BlockLayout& result, std::int64_t heads, const Rule& rule) {
  result.validate();
  std::int64_t wrong = 0;
  for (std::int64_t head = 0; head < heads; ++head) {
    for (std::int64_t q = 0; q < result.seq_q; ++q) {
      for (std::int64_t k = 0; k < result.seq_k; ++k) {
        wrong += state_at(result, head, q, k) != rule(head, q, k);
      }
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("set operations go block by block") {
  Random random(1);
  for (int i = 0; i < 150; ++i) {
    const std::int64_t heads = between(&random, 1, 3);
    const BlockLayout sizes = test::random_sizes(&random, 60);
    const BlockLayout a = test::random_blocks(&random, sizes, random.below(2) ? heads : 1);
    const BlockLayout b = test::random_blocks(&random, sizes, random.below(2) ? heads : 1);
    check_pairs(unite(a, b), heads, [&](auto head, auto q, auto k) {
      const int x = state_at(a, head, q, k), y = state_at(b, head, q, k);
      return x == 1 || y == 1 ? 1 : std::max(x, y);
    });
    check_pairs(intersect(a, b), heads, [&](auto head, auto q, auto k) {
      const int x = state_at(a, head, q, k), y = state_at(b, head, q, k);
      return x == 0 || y == 0 ? 0 : std::max(x, y);
    });
    check_pairs(subtract(a, b), heads, [&](auto head, auto q, auto k) {
      return state_at(b, head, q, k) != 0 ? 0 : state_at(a, head, q, k);
    });
  }
}

TEST_CASE("set operations keep the laws of sets") {
  Random random(2);
  for (int i = 0; i < 100; ++i) {
    const BlockLayout sizes = test::random_sizes(&random);
    const BlockLayout a = test::random_blocks(&random, sizes, 2);
    const BlockLayout b = test::random_blocks(&random, sizes, 2);
    const BlockLayout c = test::random_blocks(&random, sizes, 2);
    CHECK(unite(a, b) == unite(b, a));
    CHECK(intersect(a, b) == intersect(b, a));
    CHECK(unite(a, unite(b, c)) == unite(unite(a, b), c));
    CHECK(intersect(a, intersect(b, c)) == intersect(intersect(a, b), c));
    CHECK(unite(a, a) == a);
    CHECK(intersect(a, a) == a);
    CHECK(subtract(a, a).indices.empty());
    CHECK(subtract(subtract(a, b), c) == subtract(a, unite(b, c)));
    CHECK(transpose(transpose(a)) == a);
    CHECK(transpose(unite(a, b)) == unite(transpose(a), transpose(b)));
    CHECK(transpose(subtract(a, b)) == subtract(transpose(a), transpose(b)));
  }
}

TEST_CASE("as expressions, results see what the operators on expressions see") {
  Random random(3);
  for (int i = 0; i < 40; ++i) {
    const BlockLayout sizes = test::random_sizes(&random, 40);
    const BlockLayout a = test::random_blocks(&random, sizes, 1);
    const BlockLayout b = test::random_blocks(&random, sizes, 1);
    const std::pair<Pattern, Pattern> same[] = {{blocks(unite(a, b)), blocks(a) | blocks(b)},
                                                {blocks(intersect(a, b)), blocks(a) & blocks(b)},
                                                {blocks(subtract(a, b)), blocks(a) & ~blocks(b)}};
    for (const auto& [left, right] : same) {
      std::int64_t wrong = 0;
      for (std::int64_t q = -50; q < 50; ++q) {
        for (std::int64_t k = -5; k < 50; ++k) {
          wrong += left.visible(0, q, k) != right.visible(0, q, k);
        }
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("flags of results are never full where a pair is hidden") {
  Random random(4);
  for (int i = 0; i < 200; ++i) {
    const Pattern p = test::random_pattern(&random, 3, nullptr);
    const Pattern q = test::random_pattern(&random, 3, nullptr);
    const auto extent = pattern::Extent::whole(between(&random, 0, 90), between(&random, 0, 90));
    const std::int64_t rows = between(&random, 1, 20), columns = between(&random, 1, 20);
    const auto layout_of = [&](const Pattern& of) {
      return pattern::make_layout(of, extent, rows, columns);
    };
    // Checks that the result is safe: no visible pair is missing, and no partial block is marked
    // full.
    const auto safe = [](const BlockLayout& made, const BlockLayout& exact) {
      CHECK(subtract(exact, made).indices.empty());
      for (std::int64_t row = 0; row < made.rows(); ++row) {
        for (std::int64_t column = 0; column < made.columns(); ++column) {
          const int got = state_at(made, 0, row * made.block_rows, column * made.block_columns);
          const int want = state_at(exact, 0, row * made.block_rows, column * made.block_columns);
          if (got == 1) CHECK(want == 1);
        }
      }
    };
    CHECK(unite(layout_of(p), layout_of(q)).indices == layout_of(p | q).indices);
    safe(unite(layout_of(p), layout_of(q)), layout_of(p | q));
    safe(intersect(layout_of(p), layout_of(q)), layout_of(p & q));
  }
}

// Checks the result of slice and reblock, pair by pair.
void check_resampled(const BlockLayout& from, const BlockLayout& to,
                     const std::vector<std::int64_t>& rows, const std::vector<std::int64_t>& keys) {
  to.validate();
  REQUIRE(to.seq_q == static_cast<std::int64_t>(rows.size()));
  REQUIRE(to.seq_k == static_cast<std::int64_t>(keys.size()));
  std::int64_t wrong = 0;
  for (std::int64_t head = 0; head < from.heads; ++head) {
    for (std::int64_t row = 0; row < to.seq_q; row += to.block_rows) {
      for (std::int64_t key = 0; key < to.seq_k; key += to.block_columns) {
        bool any = false, all = true;
        for (std::int64_t i = row; i < std::min(row + to.block_rows, to.seq_q); ++i) {
          for (std::int64_t j = key; j < std::min(key + to.block_columns, to.seq_k); ++j) {
            const int state = state_at(from, head, rows[static_cast<std::size_t>(i)],
                                       keys[static_cast<std::size_t>(j)]);
            any = any || state != 0;
            all = all && state == 1;
          }
        }
        wrong += state_at(to, head, row, key) != (any ? (all ? 1 : 2) : 0);
      }
    }
  }
  CHECK(wrong == 0);
}

std::vector<Segment> random_segments(Random* random, std::int64_t length,
                                     std::vector<std::int64_t>* rows) {
  std::vector<Segment> segments;
  rows->clear();
  for (std::uint32_t i = random->below(5); i > 0; --i) {
    const std::int64_t start = between(random, 0, length);
    const std::int64_t count = between(random, 0, std::min<std::int64_t>(length - start, 40));
    segments.push_back({start, count});
    for (std::int64_t row = start; row < start + count; ++row) rows->push_back(row);
  }
  return segments;
}

TEST_CASE("a slice is what the rows and keys of a shard see") {
  Random random(5);
  std::vector<std::int64_t> rows, keys;
  for (int i = 0; i < 200; ++i) {
    const BlockLayout from =
        test::random_blocks(&random, test::random_sizes(&random, 80), between(&random, 1, 2));
    const auto row_segments = random_segments(&random, from.seq_q, &rows);
    const auto key_segments = random_segments(&random, from.seq_k, &keys);
    check_resampled(from, slice(from, row_segments, key_segments), rows, keys);
  }
}

TEST_CASE("another block size keeps every pair and adds none that its blocks do not need") {
  Random random(6);
  std::vector<std::int64_t> rows, keys;
  for (int i = 0; i < 200; ++i) {
    const BlockLayout from =
        test::random_blocks(&random, test::random_sizes(&random, 80), between(&random, 1, 2));
    rows.clear();
    keys.clear();
    for (std::int64_t row = 0; row < from.seq_q; ++row) rows.push_back(row);
    for (std::int64_t key = 0; key < from.seq_k; ++key) keys.push_back(key);
    const std::int64_t r = between(&random, 1, 30), c = between(&random, 1, 30);
    check_resampled(from, reblock(from, r, c), rows, keys);
    // Finer blocks contain the same pairs, so the conversion back is exact.
    const BlockLayout fine = reblock(from, 1, 1);
    CHECK(reblock(fine, from.block_rows, from.block_columns).indices == from.indices);
  }
}

TEST_CASE("slices of all shards hold the layout, whatever the shards are") {
  // A shard's own classification is as exact as the slice's, or finer.
  const Pattern pattern = causal() & (window(20, 0) | sink(4));
  const BlockLayout whole = pattern::make_layout(pattern, pattern::Extent::whole(96, 96), 8, 8);
  for (const std::int64_t ranks : {1, 2, 3}) {
    std::int64_t kept = 0;
    for (std::int64_t q_rank = 0; q_rank < ranks; ++q_rank) {
      for (std::int64_t k_rank = 0; k_rank < ranks; ++k_rank) {
        const auto zigzag = [&](std::int64_t rank) {
          const std::int64_t part = 48 / ranks;
          return std::vector<Segment>{{rank * part, part}, {96 - (rank + 1) * part, part}};
        };
        const BlockLayout part = slice(whole, zigzag(q_rank), zigzag(k_rank));
        kept += static_cast<std::int64_t>(part.indices.size());
        pattern::Placement placement;
        placement.q = zigzag(q_rank);
        placement.k = zigzag(k_rank);
        pattern::Classifier classifier(pattern, placement, 8, 8);
        for (std::int64_t row = 0; row < classifier.rows(); ++row) {
          std::vector<std::int32_t> columns;
          for (const pattern::BlockRun& run : classifier.row(0, row)) {
            for (auto c = run.begin; c < run.end; ++c) {
              columns.push_back(static_cast<std::int32_t>(c));
            }
          }
          const auto sliced = part.row(0, row);
          CHECK(columns == std::vector<std::int32_t>(sliced.begin(), sliced.end()));
        }
      }
    }
    CHECK(kept == static_cast<std::int64_t>(whole.indices.size()));
  }
}

TEST_CASE("operands that do not go together are refused") {
  Random random(7);
  BlockLayout sizes{.block_rows = 8,
                    .block_columns = 16,
                    .seq_q = 64,
                    .seq_k = 64,
                    .heads = 1,
                    .indptr = {},
                    .indices = {},
                    .partial = {}};
  const BlockLayout a = test::random_blocks(&random, sizes, 2);
  std::string message;
  const auto refused = [&](const std::function<void()>& action, const char* part) {
    CHECK(code_of(action, &message) == ErrorCode::kInvalidArgument);
    CHECK_MESSAGE(message.find(part) != std::string::npos, message);
  };
  refused([&] { unite(a, test::random_blocks(&random, sizes, 3)); }, "2 and for 3 heads");
  BlockLayout other = sizes;
  other.block_columns = 8;
  refused([&] { intersect(a, test::random_blocks(&random, other, 1)); }, "8 x 16 blocks");
  BlockLayout bad = a;
  bad.indptr.back() += 1;
  refused([&] { subtract(a, bad); }, "indptr ends at");
  refused([&] { transpose(bad); }, "indptr ends at");
  refused([&] { reblock(bad, 8, 8); }, "indptr ends at");
  refused([&] { reblock(a, 0, 8); }, "0 x 8");
  refused([&] { reblock(a, 8, std::int64_t{1} << 31); }, "2^30");
  const Segment good[] = {{0, 64}};
  for (const Segment& wrong : {Segment{-1, 2}, Segment{0, 65}, Segment{65, 0}, Segment{1, -1},
                               Segment{INT64_MAX, INT64_MAX}}) {
    const Segment list[] = {{3, 4}, wrong};
    refused([&] { slice(a, list, good); }, "segment 1 of the rows");
    refused([&] { slice(a, good, list); }, "segment 1 of the columns");
  }
}

TEST_CASE("a difference names rows, ranges and counts") {
  BlockLayout a{.block_rows = 8,
                .block_columns = 8,
                .seq_q = 16,
                .seq_k = 64,
                .heads = 1,
                .indptr = {0, 4, 6},
                .indices = {0, 1, 2, 5, 3, 7},
                .partial = {}};
  BlockLayout b = a;
  CHECK(difference(a, b).text.empty());
  CHECK(difference(a, b, 0).text.empty());
  CHECK_THROWS_WITH_AS(difference(a, b, -1), "max_lines is -1; give 0 or more", Error);
  b.indptr = {0, 2, 4};
  b.indices = {5, 6, 3, 7};
  b.partial = {0, 0, 1, 0};
  LayoutDifference found = difference(a, b);
  CHECK(
      found.text ==
      "head 0 row 0: -0..2 +6\nhead 0 row 1: ~3\n3 blocks removed, 1 added, 1 with another flag\n");
  CHECK(found.only_first == 3);
  CHECK(found.only_second == 1);
  CHECK(found.flags == 1);
  CHECK(found.same_sizes);
  found = difference(a, b, 1);
  CHECK(found.text ==
        "head 0 row 0: -0..2 +6\n1 more rows\n3 blocks removed, 1 added, 1 with another flag\n");
  b = reblock(a, 16, 8);
  found = difference(a, b);
  CHECK_FALSE(found.same_sizes);
  CHECK(found.text == "R: 8 and 16\n");
  Random random(8);
  for (int i = 0; i < 50; ++i) {
    const BlockLayout sizes = test::random_sizes(&random);
    const BlockLayout x = test::random_blocks(&random, sizes, 2);
    const BlockLayout y = test::random_blocks(&random, sizes, 2);
    found = difference(x, y);
    CHECK(found.only_first == static_cast<std::int64_t>(subtract(x, y).indices.size()));
    CHECK(found.only_second == static_cast<std::int64_t>(subtract(y, x).indices.size()));
    CHECK(found.text.empty() == (x == y));
  }
}

}  // namespace
}  // namespace annulus
