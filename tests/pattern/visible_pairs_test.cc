// Counts pairs by groups of rows that continue in the same way, and compares with counting one by
// one.

#include <doctest/doctest.h>

#include <set>

#include "pattern/classify.h"
#include "pattern/random_pattern.h"
#include "pattern/rows_alike.h"
#include "pattern/visible_hull.h"
#include "support/options.h"

namespace annulus::pattern {
namespace {

using base::Random;
using test::between;
using test::code_of;
using test::random_pattern;

constexpr std::int64_t kBillion = std::int64_t{1} << 30;

constexpr PatternContext kContext = {.seq_k = 100, .layer = 4};

std::int64_t count_row(const Pattern& pattern, std::int64_t head, std::int64_t q, Interval keys) {
  std::int64_t count = 0;
  for (std::int64_t k = keys.begin; k < keys.end; ++k) {
    count += pattern.visible(head, q, k, kContext);
  }
  return count;
}

TEST_CASE("visible pairs are counted exactly") {
  Random random(test::seed_of(25));
  for (int i = 0; i < 400; ++i) {
    const auto layout = std::make_shared<const BlockLayout>(test::random_layout(&random, 80, 100));
    const Pattern pattern =
        random_pattern(&random, 1 + static_cast<int>(random.below(4)), i % 2 ? layout : nullptr);
    const Extent extent = {between(&random, 0, 400), between(&random, 0, 90),
                           between(&random, -200, 120), between(&random, -60, 60)};
    const std::int64_t head = random.below(7);
    std::int64_t expected = 0;
    for (std::int64_t q = extent.queries().begin; q < extent.queries().end; ++q) {
      expected += count_row(pattern, head, q, extent.keys());
    }
    CHECK(visible_pairs(pattern, head, extent, kContext) == expected);
  }
}

TEST_CASE("the first and the last key that any row of a placement sees are found") {
  Random random(test::seed_of(27));
  int cut = 0;  // hulls that leave out keys at both ends
  for (int i = 0; i < 600; ++i) {
    const auto layout = std::make_shared<const BlockLayout>(test::random_layout(&random, 80, 100));
    Pattern pattern =
        random_pattern(&random, 1 + static_cast<int>(random.below(4)), i % 2 ? layout : nullptr);
    if (i % 3 == 0) pattern = pattern & keys(20, 60) & ~queries(-40, between(&random, -40, 90));
    Placement placement;
    placement.context = kContext;
    for (auto* segments : {&placement.q, &placement.k}) {
      for (std::uint32_t n = 0; n <= random.below(3); ++n) {
        segments->push_back({between(&random, -200, 120), between(&random, 0, 300)});
      }
    }
    const std::int64_t head = random.below(7);
    std::set<std::int64_t> seen;
    std::int64_t row = 0;
    for (const Segment& part : placement.k) {
      for (std::int64_t k = part.start; k < part.start + part.length; ++k, ++row) {
        for (const Segment& queries : placement.q) {
          for (std::int64_t q = queries.start; q < queries.start + queries.length; ++q) {
            if (pattern.visible(head, q, k, kContext)) {
              seen.insert(row);
              q = queries.start + queries.length;
            }
          }
        }
      }
    }
    const Interval found = visible_hull(pattern, head, placement);
    CAPTURE(pattern.to_string());
    CHECK(found.empty() == seen.empty());
    if (seen.empty()) continue;
    CHECK(found == Interval{*seen.begin(), *seen.rbegin() + 1});
    cut += found.begin > 0 && found.end < row;
    const Interval held = {row / 3, row / 2 + 1};
    const Interval wider = visible_hull(pattern, head, placement, held);
    CHECK(wider == Interval{std::min(held.begin, found.begin), std::max(held.end, found.end)});
  }
  CHECK(cut > 20);
}

TEST_CASE("rows that go on in the same way are an arithmetic progression") {
  Random random(test::seed_of(26));
  std::int64_t longest = 0;
  for (int i = 0; i < 1500; ++i) {
    const auto layout = std::make_shared<const BlockLayout>(test::random_layout(&random, 80, 100));
    const Pattern pattern = random_pattern(&random, 1 + static_cast<int>(random.below(5)),
                                           i % 4 == 0 ? layout : nullptr);
    const Interval keys = {between(&random, -60, 0), between(&random, 0, 90)};
    const std::int64_t head = random.below(7);
    const std::int64_t q = between(&random, -150, 200);
    const std::int64_t rows = RowsAlike(pattern.node()).from(q, keys);
    REQUIRE(rows >= 1);
    const std::int64_t looked_at = std::min<std::int64_t>(rows, 400);
    const std::int64_t first = count_row(pattern, head, q, keys);
    const std::int64_t step = looked_at > 1 ? count_row(pattern, head, q + 1, keys) - first : 0;
    for (std::int64_t row = 0; row < looked_at; ++row) {
      if (count_row(pattern, head, q + row, keys) != first + row * step) {
        FAIL(pattern.to_string() << " from q " << q << ": row " << row << " of " << rows);
      }
    }
    longest = std::max(longest, looked_at);
  }
  CHECK(longest == 400);
}

void keep_everything(BlockLayout* layout) {
  layout->indptr = {0};
  layout->indices.clear();
  layout->partial.clear();
  for (std::int64_t row = 0; row < layout->heads * layout->rows(); ++row) {
    for (std::int64_t i = 0; i < layout->columns(); ++i) {
      layout->indices.push_back(static_cast<std::int32_t>(i));
    }
    layout->indptr.push_back(std::ssize(layout->indices));
  }
}

TEST_CASE("groups of rows that are said to see the same keys do") {
  Random random(test::seed_of(28));
  int groups_alike = 0;
  int leaves_alike = 0;
  for (int i = 0; i < 4000; ++i) {
    BlockLayout made = test::random_layout(&random, 80, 100);
    if (i % 8 == 0) keep_everything(&made);
    const auto layout = std::make_shared<const BlockLayout>(std::move(made));
    const Pattern leaf = i % 2 ? random_pattern(&random, 1, nullptr) : blocks(layout);
    const std::int64_t first = between(&random, -20, 60);
    const Interval queries = {first, first + between(&random, 1, 40)};
    const std::int64_t rows = between(&random, 1, 12);
    if (!sees_alike_in_groups(leaf.node(), queries, rows)) continue;
    ++leaves_alike;
    const std::int64_t head = random.below(7);
    for (std::int64_t q = queries.begin; q < queries.end; ++q) {
      const std::int64_t of_group = q - (q - queries.begin) % rows;
      groups_alike += q != of_group;
      for (std::int64_t k = -10; k < 110; ++k) {
        REQUIRE(leaf.visible(head, q, k, kContext) == leaf.visible(head, of_group, k, kContext));
      }
    }
  }
  CHECK(leaves_alike > 400);
  CHECK(groups_alike > 2000);
}

TEST_CASE("the density of many heads is the mean of theirs") {
  const Extent extent = Extent::whole(30, 50);
  const Pattern pattern = heads({segment(20, 3), random(1, 4, 10)});
  double pairs = 0;
  for (std::int64_t head = 0; head < 9; ++head) {
    pairs += static_cast<double>(visible_pairs(pattern, head, extent));
  }
  CHECK(density(pattern, extent, 9).value == doctest::Approx(pairs / (9 * 30 * 50)));
  const Pattern two = heads({causal(), sink(10)});
  CHECK(density(two, extent, 3).value ==
        doctest::Approx((2 * density(causal(), extent).value + 10.0 / 50) / 3));
}

TEST_CASE("a billion rows cost what a thousand do") {
  const Extent extent = Extent::whole(kBillion, kBillion);
  const auto triangle = [](std::int64_t n) { return n * (n + 1) / 2; };
  CHECK(visible_pairs(dense(), 0, extent) == kBillion * kBillion);
  CHECK(visible_pairs(causal(), 0, extent) == triangle(kBillion));
  CHECK(visible_pairs(causal() & window(4095, 0), 0, extent) ==
        triangle(4096) + (kBillion - 4096) * 4096);
  // Rows q >= 4096 see 128 more keys, unless the window already contains them.
  CHECK(visible_pairs(causal() & (window(4095, 0) | sink(128)), 0, extent) ==
        triangle(4096) + (kBillion - 4096) * 4096 + triangle(127) + (kBillion - 4096 - 127) * 128);
  CHECK(visible_pairs(global(16), 0, extent) ==
        kBillion * kBillion - (kBillion - 16) * (kBillion - 16));
  const std::vector<std::int64_t> starts = {0, 1000, kBillion / 2};
  const std::int64_t half = kBillion / 2;
  CHECK(visible_pairs(causal() & documents(starts), 0, extent) ==
        triangle(1000) + triangle(half - 1000) + triangle(half));

  const std::vector<Pattern> patterns = {
      dense(), causal(), causal() & (window(4095, 0) | sink(128)), window(63, 63) | global(16)};
  for (const Pattern& pattern : patterns) {
    const RowsAlike alike(pattern.node());
    int steps = 0;
    for (std::int64_t q = 0; q < kBillion; ++steps) q += alike.from(q, extent.keys());
    CHECK(steps <= 12);
  }
}

TEST_CASE("what is no number of pairs is refused or zero") {
  CHECK(density(dense(), Extent::whole(10, 20)).value == 1.0);
  CHECK(density(dense(), Extent::whole(0, 20)).value == 0.0);
  CHECK(density(causal(), Extent::whole(kBillion, kBillion)).value == doctest::Approx(0.5));
  CHECK(code_of([] { visible_pairs(dense(), 0, Extent::whole(INT64_MAX, 1)); }) ==
        ErrorCode::kInvalidArgument);
  const std::int64_t most = std::int64_t{1} << 48;
  CHECK(code_of([&] { visible_pairs(dense(), 0, Extent::whole(most, most)); }) ==
        ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace annulus::pattern
