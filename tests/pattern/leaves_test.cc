// Every leaf of the language at its edges. Classes of blocks and counts of pairs are compared with
// single elements, for lengths from 0 on, with offsets, and for blocks that do not divide the
// lengths.
#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "pattern/classify.h"
#include "pattern/leaves/leaves.h"
#include "pattern/leaves/mask_writer.h"
#include "pattern/random_pattern.h"
#include "support/options.h"

namespace annulus::pattern {
namespace {

// A leaf that lacks a verb, or whose structure does not state a required fact, must not compile.
struct NeverChanges : leaves::Keys {
  std::int64_t next_form(std::int64_t) const = delete;
};
struct Unseen : leaves::Keys {
  bool visible(const leaves::Pair&) const = delete;
};
static_assert(leaves::IsLeaf<leaves::Keys>);
static_assert(!leaves::IsLeaf<NeverChanges>);
static_assert(!leaves::IsLeaf<Unseen>);
static_assert(!std::is_default_constructible_v<leaves::Structure>);

const char* const kLeaves[] = {
    "dense",
    "causal",
    "window(0, 0)",
    "window(3, 2)",
    "window(1000, 1000)",
    "window(-1, 4)",
    "window(4, -1)",
    "window(-1, -1)",
    "window(-3, 10)",
    "window(10, -3)",
    "window(-2, 2)",
    "window(-4, -1)",
    "window(-1, -4)",
    "window(-1000, 1000)",
    "queries(0, 0)",
    "queries(-4, 6)",
    "queries(9, 1000)",
    "keys(3, 3)",
    "keys(-4, 6)",
    "keys(9, 1000)",
    "every(1, 0)",
    "every(2, 1)",
    "every(5, 3)",
    "every(1000, 7)",
    "sink(0)",
    "sink(5)",
    "prefix(1000)",
    "global(0)",
    "global(4)",
    "global([])",
    "global([-3, 0, 9, 500])",
    "dilated(1)",
    "dilated(3)",
    "dilated(1000)",
    "block_dilated(2, 5)",
    "block_dilated(3, 1000)",
    "strided(1, 0, 4)",
    "strided(3, 1, 4)",
    "strided(1000, 0, 3)",
    "random(0, 1, 4)",
    "random(2, 1, 4)",
    "random(1000, 1, 4)",
    "random(1, 1, 1000)",
    "segment(1, 1)",
    "segment(8, 1)",
    "segment(10, 3)",
    "segment(3, 10)",
    "segment(1000, 2)",
    "axial(1, 1)",
    "axial(4, 7)",
    "axial(1000, 1)",
    "axial(1, 1000)",
    "natten(1, 1, 1)",
    "natten(5, 6, 3)",
    "natten(5, 5, 5)",
    "documents([])",
    "documents([0])",
    "documents([-4, 0, 1, 20, 500])",
    "vertical_slash([], [])",
    "vertical_slash([0, 7], [-2, 0, 1, 9])",
    "hierarchical([(1, 0, 1)])",
    "hierarchical([(1, 1, 4), (3, -1, 5)])",
    "heads(causal, window(2, 2), dilated(2))",
    "head_groups(2, causal, window(2, 2))",
    "head_groups(1000, keys(2, 9), causal)",
    "sum(causal & segment(8, 1), causal & segment(16, 2))",
    "~dense",
};

// Adds the indices in leaves.def of the pattern's leaves to `noted`.
void note_leaves(const Pattern& pattern, std::set<std::size_t>* noted) {
  each_leaf(pattern.node(), [&](const leaves::Leaf& leaf) { noted->insert(leaf.index()); });
}

TEST_CASE("random patterns draw every leaf, and the texts above have every leaf but a layout") {
  base::Random random(1);
  const auto layout = std::make_shared<const BlockLayout>(test::random_layout(&random, 60, 80));
  std::set<std::size_t> drawn, listed;
  for (int i = 0; i < 1000; ++i) note_leaves(test::random_leaf(&random, layout), &drawn);
  note_leaves(blocks(layout), &listed);
  for (const char* text : kLeaves) note_leaves(Pattern::parse(text), &listed);
  std::size_t index = 0;
  for (const std::string name : {
#define ANNULUS_LEAF(Name) #Name,
#include "pattern/leaves/leaves.def"
#undef ANNULUS_LEAF
       }) {
    CAPTURE(name);
    CHECK(drawn.contains(index));
    CHECK(listed.contains(index));
    ++index;
  }
}

struct Truth {
  std::vector<std::int32_t> kept;  // block columns, by head and row
  std::vector<std::uint8_t> partial;
  std::int64_t pairs = 0;  // over all heads
};

Truth look(const Pattern& pattern, const Extent& extent, std::int64_t heads, std::int64_t rows,
           std::int64_t columns) {
  Truth truth;
  for (std::int64_t head = 0; head < heads; ++head) {
    for (std::int64_t row = 0; row < extent.seq_q; row += rows) {
      for (std::int64_t column = 0; column < extent.seq_k; column += columns) {
        std::int64_t seen = 0;
        std::int64_t all = 0;
        for (std::int64_t i = row; i < std::min(row + rows, extent.seq_q); ++i) {
          for (std::int64_t j = column; j < std::min(column + columns, extent.seq_k); ++j, ++all) {
            seen += pattern.visible(head, extent.q_position + i, extent.k_position + j,
                                    extent.context());
          }
        }
        truth.pairs += seen;
        if (seen == 0) continue;
        truth.kept.push_back(static_cast<std::int32_t>(column / columns));
        truth.partial.push_back(seen < all);
      }
    }
  }
  return truth;
}

void check(const Pattern& pattern, const Extent& extent, std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t kHeads = 3;
  const BlockLayout layout = make_layout(pattern, extent, rows, columns, kHeads);
  layout.validate();
  Truth truth = look(pattern, extent, layout.heads, rows, columns);
  CHECK(layout.indices == truth.kept);
  if (layout.partial.empty()) {
    for (const std::uint8_t partial : truth.partial) CHECK(partial == 0);
  } else {
    CHECK(layout.partial == truth.partial);
  }
  std::int64_t pairs = 0;
  for (std::int64_t head = 0; head < layout.heads; ++head) {
    pairs += visible_pairs(pattern, head, extent);
  }
  CHECK(pairs == truth.pairs);
}

TEST_CASE("every leaf, at every length from none on, with offsets and blocks that divide nothing") {
  constexpr std::int64_t kBlocks[][2] = {{1, 1}, {4, 4}, {7, 3}, {64, 5}};
  for (const char* text : kLeaves) {
    CAPTURE(text);
    const Pattern pattern = Pattern::parse(text);
    CHECK(Pattern::parse(pattern.to_string()) == pattern);
    for (const std::int64_t seq_q : {0, 1, 9, 31}) {
      for (const std::int64_t seq_k : {0, 1, 14, 31}) {
        for (const Extent& extent : {Extent::whole(seq_q, seq_k), Extent{seq_q, seq_k, -13, -6},
                                     Extent{seq_q, seq_k, 20, 5}}) {
          CAPTURE(seq_q);
          CAPTURE(seq_k);
          CAPTURE(extent.q_position);
          for (const auto& [rows, columns] : kBlocks) check(pattern, extent, rows, columns);
        }
      }
    }
  }
}

TEST_CASE("operands of an & give the same in any order") {
  base::Random random(test::seed_of(41));
  for (int i = 0; i < 300; ++i) {
    const auto layout = std::make_shared<const BlockLayout>(test::random_layout(&random, 60, 80));
    const Pattern a = test::random_pattern(&random, 3, layout);
    const Pattern b = test::random_leaf(&random, layout);
    const Extent extent = {40, 70, test::between(&random, -30, 60), test::between(&random, -30, 9)};
    CAPTURE((a & b).to_string());
    CHECK(make_layout(a & b, extent, 7, 6) == make_layout(b & a, extent, 7, 6));
    CHECK(make_layout(a & causal(), extent, 7, 6) == make_layout(causal() & a, extent, 7, 6));
  }
}

TEST_CASE("ten thousand levels are refused, however they are made") {
  for (const char* unit : {"~", "(", "causal & (dense | ", "heads(causal, "}) {
    std::string text;
    for (int i = 0; i < 10'000; ++i) text += unit;
    CHECK(test::code_of([&] { Pattern::parse(text + "causal"); }) == ErrorCode::kParse);
  }
  const auto grow = [](auto wrap) {
    Pattern pattern = causal();
    for (int i = 0; i < 10'000; ++i) pattern = wrap(pattern);
  };
  CHECK(test::code_of([&] { grow([](const Pattern& p) { return ~p; }); }) ==
        ErrorCode::kInvalidArgument);
  CHECK(test::code_of([&] {
          grow([](const Pattern& p) { return heads({p, dense()}); });
        }) == ErrorCode::kInvalidArgument);
  CHECK(test::code_of([&] { grow([](const Pattern& p) { return p & sink(1); }); }) ==
        ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace annulus::pattern
