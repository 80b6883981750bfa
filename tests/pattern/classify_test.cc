#include "pattern/classify.h"

#include <doctest/doctest.h>

#include "pattern/node.h"
#include "pattern/random_pattern.h"
#include "support/options.h"

namespace annulus::pattern {
namespace {

using base::Random;
using test::between;
using test::code_of;
using test::random_pattern;

// The class found element by element: 0 empty, 1 partial, 2 full.
int class_of(const Pattern& pattern, std::int64_t head, const PatternContext& context,
             const Interval& queries, const Interval& keys) {
  bool seen = false;
  bool unseen = false;
  for (std::int64_t q = queries.begin; q < queries.end; ++q) {
    for (std::int64_t k = keys.begin; k < keys.end; ++k) {
      (pattern.visible(head, q, k, context) ? seen : unseen) = true;
    }
  }
  return seen ? (unseen ? 1 : 2) : 0;
}

Extent random_extent(Random* random) {
  const std::int64_t seq_q = between(random, 1, 70);
  const std::int64_t seq_k = between(random, 1, 90);
  if (random->below(2) == 0) return Extent::whole(seq_q, seq_k);
  return {seq_q, seq_k, between(random, -80, 120), between(random, -60, 60)};
}

TEST_CASE("interval sets behave as sets") {
  Random random(test::seed_of(21));
  const auto draw = [&] {
    IntervalSet set;
    std::int64_t at = -5;
    while (at < 40) {
      const std::int64_t begin = at + between(&random, 1, 9);
      at = begin + between(&random, 0, 9);
      append(&set, {begin, at});
    }
    return set;
  };
  const auto has = [](const IntervalSet& set, std::int64_t number) {
    for (const Interval& interval : set) {
      if (interval.begin <= number && number < interval.end) return true;
    }
    return false;
  };
  for (int i = 0; i < 500; ++i) {
    const IntervalSet a = draw();
    const IntervalSet b = draw();
    IntervalSet both, either, less, other;
    intersect(a, b, &both);
    unite(a, b, &either);
    subtract(a, b, &less);
    complement(a, {0, 30}, &other);
    for (const IntervalSet* set :
         std::initializer_list<const IntervalSet*>{&a, &b, &both, &either, &less, &other}) {
      for (std::size_t j = 0; j < set->size(); ++j) {
        CHECK_FALSE((*set)[j].empty());
        if (j > 0) CHECK((*set)[j - 1].end < (*set)[j].begin);
      }
    }
    std::int64_t count = 0;
    for (std::int64_t n = -10; n < 70; ++n) {
      count += has(a, n);
      CHECK(has(both, n) == (has(a, n) && has(b, n)));
      CHECK(has(either, n) == (has(a, n) || has(b, n)));
      CHECK(has(less, n) == (has(a, n) && !has(b, n)));
      CHECK(has(other, n) == (n >= 0 && n < 30 && !has(a, n)));
    }
    CHECK(size(a) == count);
    const std::int64_t begin = between(&random, -8, 50);
    const Interval probe = {begin, begin + between(&random, 0, 12)};
    const IntervalSet probes = probe.empty() ? IntervalSet{} : IntervalSet{probe};
    intersect(a, probes, &both);
    CHECK(touches(a, probe) == (size(both) > 0));
    CHECK(covers(a, probe) == (size(both) == probe.size()));
  }
}

TEST_CASE("rows of random trees agree with their elements") {
  Random random(test::seed_of(22));
  std::vector<std::uint8_t> row;
  for (int i = 0; i < 1500; ++i) {
    const std::int64_t heads = 1 + random.below(3);
    const auto layout = std::make_shared<const BlockLayout>(
        test::random_layout(&random, between(&random, 0, 80), between(&random, 0, 100), heads));
    const Pattern pattern = random_pattern(&random, 5, layout);
    const Extent extent = random_extent(&random);
    Evaluator evaluator(pattern, extent.context());
    row.resize(static_cast<std::size_t>(extent.seq_k));
    const std::int64_t head = random.below(static_cast<std::uint32_t>(heads));
    for (int draw = 0; draw < 4; ++draw) {
      const std::int64_t q = between(&random, extent.q_position, extent.queries().end - 1);
      visible_row(&evaluator, head, q, extent.k_position, extent.seq_k, row.data());
      for (std::int64_t j = 0; j < extent.seq_k; ++j) {
        const bool expected = pattern.visible(head, q, extent.k_position + j, extent.context());
        if ((row[static_cast<std::size_t>(j)] == 1) != expected) {
          FAIL(pattern.to_string() << " q " << q << " k " << extent.k_position + j);
        }
      }
    }
  }
}

TEST_CASE("bounds of random trees hold, and keys without doubt are exact") {
  Random random(test::seed_of(23));
  for (int i = 0; i < 3000; ++i) {
    const auto layout = std::make_shared<const BlockLayout>(
        test::random_layout(&random, 60, between(&random, 0, 90)));
    const Pattern pattern = random_pattern(&random, 5, layout);
    const PatternContext context = {.seq_k = between(&random, 0, 120), .layer = 7};
    Evaluator evaluator(pattern, context);
    const std::int64_t first = between(&random, -80, 120);
    const Interval queries = {first, first + between(&random, 1, 12)};
    const Interval universe = {between(&random, -60, 0), between(&random, 1, 90)};
    const std::int64_t grain = i % 2 == 0 ? 0 : between(&random, 1, 30);
    const std::int64_t head = random.below(5);
    const Bounds& bounds = evaluator.range(head, queries, universe, grain);
    CAPTURE(pattern.to_string());
    for (std::int64_t k = universe.begin; k < universe.end; ++k) {
      const int exact = class_of(pattern, head, context, queries, {k, k + 1});
      const bool all = touches(bounds.all, {k, k + 1});
      const bool any = touches(bounds.any, {k, k + 1});
      const bool doubt = touches(bounds.doubt, {k, k + 1});
      const bool right = doubt ? any && !all : exact == (all ? 2 : any ? 1 : 0);
      if (!right || (touches(bounds.mixed, {k, k + 1}) && !doubt)) {
        FAIL("head " << head << " q [" << queries.begin << ", " << queries.end << ") k " << k);
      }
    }
    if (grain == 0) CHECK(bounds.mixed.empty());
    for (const Interval& keys : bounds.mixed) {
      for (std::int64_t k = keys.begin; k + grain <= keys.end; ++k) {
        if (class_of(pattern, head, context, queries, {k, k + grain}) != 1) {
          FAIL("head " << head << " q [" << queries.begin << ", " << queries.end
                       << ") of keys from " << k << " on " << grain << " are not mixed");
        }
      }
    }
  }
}

TEST_CASE("keys that all queries of axial() see are not mixed") {
  const Pattern pattern = axial(9, 4);
  Evaluator evaluator(pattern, {.seq_k = 36});
  const Bounds& bounds = evaluator.range(0, {23, 24}, {0, 36}, 6);
  CHECK(touches(bounds.all, {3, 4}));
  for (const Interval& keys : bounds.mixed) {
    for (std::int64_t k = keys.begin; k < keys.end; ++k) {
      CHECK(touches(bounds.doubt, {k, k + 1}));
    }
  }
}

TEST_CASE("leaves have no doubt, and one query has none whatever the tree") {
  Random random(test::seed_of(28));
  for (int i = 0; i < 2000; ++i) {
    const auto layout = std::make_shared<const BlockLayout>(test::random_layout(&random, 60, 90));
    const bool one = i % 2 == 0;
    const Pattern pattern =
        one ? random_pattern(&random, 4, layout) : test::random_leaf(&random, layout);
    if (!one && pattern.node().kind == Kind::kHierarchical) continue;  // it contains an |
    Evaluator evaluator(pattern, {.seq_k = 90});
    const std::int64_t first = between(&random, -80, 120);
    const Interval queries = {first, first + (one ? 1 : between(&random, 1, 40))};
    CAPTURE(pattern.to_string());
    CHECK(evaluator.range(random.below(9), queries, {-70, 130}).doubt.empty());
  }
}

TEST_CASE("classes of random trees are exact, with ragged edges and negative positions") {
  Random random(test::seed_of(24));
  int repeated = 0;
  for (int i = 0; i < 1200; ++i) {
    const std::int64_t heads = 1 + random.below(2);
    const auto layout = std::make_shared<const BlockLayout>(
        test::random_layout(&random, between(&random, 0, 80), between(&random, 0, 100), heads));
    const Pattern pattern = random_pattern(&random, 1 + static_cast<int>(random.below(5)), layout);
    const Extent extent = random_extent(&random);
    const PatternContext context = {.seq_k = between(&random, 0, 150), .layer = 1};
    const std::int64_t rows = between(&random, 1, 24);
    const std::int64_t columns = between(&random, 1, 24);
    Classifier classifier(pattern, Placement::of(extent, context), rows, columns);
    const std::int64_t head = random.below(static_cast<std::uint32_t>(heads));
    for (std::int64_t row = 0; row < classifier.rows(); ++row) {
      std::vector<int> found(static_cast<std::size_t>(classifier.columns()), 0);
      std::int64_t before = -1;
      bool partial_before = false;
      if (row > 0 && classifier.repeats(row)) {
        ++repeated;
        const std::vector<BlockRun> earlier = classifier.row(head, row - 1);
        CHECK(classifier.row(head, row) == earlier);
      }
      for (const BlockRun& run : classifier.row(head, row)) {
        CHECK(run.begin < run.end);
        CHECK(run.begin >= before);
        if (run.begin == before) CHECK(run.partial != partial_before);
        before = run.end;
        partial_before = run.partial;
        for (std::int64_t column = run.begin; column < run.end; ++column) {
          found[static_cast<std::size_t>(column)] = run.partial ? 1 : 2;
        }
      }
      const Interval queries = intersection(
          {extent.q_position + row * rows, extent.q_position + (row + 1) * rows}, extent.queries());
      for (std::int64_t column = 0; column < classifier.columns(); ++column) {
        const Interval keys = intersection(
            {extent.k_position + column * columns, extent.k_position + (column + 1) * columns},
            extent.keys());
        if (found[static_cast<std::size_t>(column)] !=
            class_of(pattern, head, context, queries, keys)) {
          FAIL(pattern.to_string()
               << " block (" << row << ", " << column << ") of " << rows << " x " << columns
               << ", q0 " << extent.q_position << ", k0 " << extent.k_position);
        }
      }
    }
  }
  CHECK(repeated > 100);
}

// The positions of the rows of a tensor that is a shard.
std::vector<std::int64_t> positions_of(const std::vector<Segment>& segments) {
  std::vector<std::int64_t> positions;
  for (const Segment& segment : segments) {
    for (std::int64_t i = 0; i < segment.length; ++i) positions.push_back(segment.start + i);
  }
  return positions;
}

std::string text_of(const std::vector<Segment>& segments) {
  std::string text;
  for (const Segment& segment : segments) {
    text += "[" + std::to_string(segment.start) + "+" + std::to_string(segment.length) + "]";
  }
  return text;
}

std::vector<Segment> random_segments(Random* random) {
  std::vector<Segment> segments(1 + random->below(4));
  for (Segment& segment : segments) {
    segment = {between(random, -40, 90), between(random, 0, 30)};
  }
  return segments;
}

TEST_CASE("classes of shards are exact, with blocks over the edges of segments") {
  Random random(test::seed_of(27));
  for (int i = 0; i < 1000; ++i) {
    const auto layout = std::make_shared<const BlockLayout>(
        test::random_layout(&random, between(&random, 0, 80), between(&random, 0, 100)));
    const Pattern pattern = random_pattern(&random, 1 + static_cast<int>(random.below(5)), layout);
    const Placement placement = {random_segments(&random), random_segments(&random), {90, 2}};
    const std::int64_t rows = between(&random, 1, 24);
    const std::int64_t columns = between(&random, 1, 24);
    const std::vector<std::int64_t> q = positions_of(placement.q);
    const std::vector<std::int64_t> k = positions_of(placement.k);
    Classifier classifier(pattern, placement, rows, columns);
    CHECK(classifier.rows() == (static_cast<std::int64_t>(q.size()) + rows - 1) / rows);
    CHECK(classifier.columns() == (static_cast<std::int64_t>(k.size()) + columns - 1) / columns);
    for (std::int64_t row = 0; row < classifier.rows(); ++row) {
      std::vector<int> found(static_cast<std::size_t>(classifier.columns()), 0);
      for (const BlockRun& run : classifier.row(0, row)) {
        for (std::int64_t column = run.begin; column < run.end; ++column) {
          found[static_cast<std::size_t>(column)] = run.partial ? 1 : 2;
        }
      }
      for (std::int64_t column = 0; column < classifier.columns(); ++column) {
        bool seen = false;
        bool unseen = false;
        for (std::size_t a = row * rows; a < q.size() && a < std::size_t((row + 1) * rows); ++a) {
          for (std::size_t b = column * columns;
               b < k.size() && b < std::size_t((column + 1) * columns); ++b) {
            (pattern.visible(0, q[a], k[b], placement.context) ? seen : unseen) = true;
          }
        }
        if (found[static_cast<std::size_t>(column)] != (seen ? (unseen ? 1 : 2) : 0)) {
          FAIL(pattern.to_string() << " block (" << row << ", " << column << ") of " << rows
                                   << " x " << columns << " is " << (seen ? (unseen ? 1 : 2) : 0)
                                   << " not " << found[static_cast<std::size_t>(column)] << ", q "
                                   << text_of(placement.q) << " k " << text_of(placement.k));
        }
      }
    }
  }
}

TEST_CASE("rows in one row of blocks repeat, and others do not") {
  const auto layout = std::make_shared<const BlockLayout>(
      BlockLayout{16, 16, 64, 64, 1, {0, 1, 2, 3, 4}, {0, 3, 1, 2}, {}});
  const auto repeating = [](const Pattern& pattern, const Extent& extent) {
    const Classifier classifier(pattern, extent, 8, 8);
    std::vector<std::int64_t> rows;
    for (std::int64_t row = 1; row < classifier.rows(); ++row) {
      if (classifier.repeats(row)) rows.push_back(row);
    }
    return rows;
  };
  using Rows = std::vector<std::int64_t>;
  CHECK(repeating(blocks(layout), Extent::whole(64, 64)) == Rows{1, 3, 5, 7});
  CHECK(repeating(blocks(layout), Extent::whole(61, 64)) == Rows{7});  // this row is cut off
  CHECK(repeating(blocks(layout) & documents({0, 32}), Extent::whole(64, 64)).empty());
  CHECK(repeating(blocks(layout) & causal(), Extent::whole(64, 64)).empty());
  // Rows outside the layout see nothing.
  CHECK(repeating(blocks(layout), {72, 64, -4, 0}).empty());
  CHECK(repeating(blocks(layout), {36, 64, 0, 0}) == Rows{1, 3});
  CHECK(repeating(dense(), Extent::whole(40, 64)) == Rows{1, 2, 3, 4});
}

TEST_CASE("layouts of a million tokens cost by the blocks kept") {
  const std::int64_t million = std::int64_t{1} << 20;
  const Pattern local = causal() & (window(4095, 0) | sink(128));
  const BlockLayout layout = make_layout(local, Extent::whole(million, million), 128, 128);
  layout.validate();
  // Row i sees the blocks i - 32 to i, if they exist, and block 0.
  CHECK(layout.indices.size() == 528 + 33 + 8159 * 34);
  CHECK(layout.row(0, 8191).size() == 34);
  CHECK(layout.row(0, 8191)[0] == 0);
}

TEST_CASE("a layout keeps the classes, and as an expression sees at least as much") {
  Random random(test::seed_of(26));
  for (int i = 0; i < 100; ++i) {
    const Pattern pattern = random_pattern(&random, 4, nullptr);
    const Extent extent = Extent::whole(between(&random, 0, 70), between(&random, 0, 90));
    const std::int64_t rows = between(&random, 1, 20);
    const std::int64_t columns = between(&random, 1, 20);
    const BlockLayout layout = make_layout(pattern, extent, rows, columns);
    layout.validate();
    Classifier classifier(pattern, extent, rows, columns);
    std::size_t kept = 0;
    for (std::int64_t row = 0; row < classifier.rows(); ++row) {
      for (const BlockRun& run : classifier.row(0, row)) {
        for (std::int64_t column = run.begin; column < run.end; ++column, ++kept) {
          CHECK(layout.indices[kept] == column);
          CHECK((!layout.partial.empty() && layout.partial[kept] == 1) == run.partial);
        }
      }
    }
    CHECK(kept == layout.indices.size());
    // Keeping blocks only adds pairs. The intersection with the expression removes them again.
    const Pattern both = pattern & blocks(layout);
    CHECK(visible_pairs(both, 0, extent) == visible_pairs(pattern, 0, extent));
  }
}

TEST_CASE("bad sizes are refused") {
  const std::int64_t many = std::int64_t{1} << 17;
  CHECK(code_of([&] { make_layout(dense(), Extent::whole(many, many), 1, 1); }) ==
        ErrorCode::kOutOfMemory);
  const Extent extent = Extent::whole(10, 10);
  CHECK(code_of([&] { Classifier(causal(), extent, 0, 1); }) == ErrorCode::kInvalidArgument);
  CHECK(code_of([&] { Classifier(causal(), extent, 1, -1); }) == ErrorCode::kInvalidArgument);
  CHECK(code_of([&] { Classifier(causal(), extent, INT64_MAX, 1); }) ==
        ErrorCode::kInvalidArgument);
  CHECK(code_of([&] {
          Classifier(causal(), {10, -1, 0, 0}, 1, 1);
        }) == ErrorCode::kInvalidArgument);
  CHECK(code_of([&] {
          Classifier(causal(), {10, 10, INT64_MIN, 0}, 1, 1);
        }) == ErrorCode::kInvalidArgument);
  CHECK(code_of([&] { make_layout(causal(), Extent::whole(1, std::int64_t{1} << 40), 1, 1); }) ==
        ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace annulus::pattern
