#include <doctest/doctest.h>

#include "layout/sample_layout.h"

namespace annulus {
namespace {

using base::Random;
using test::between;
using test::code_of;
using test::state_at;

// A layout whose query heads share stored heads.
BlockLayout random_shared(Random* random) {
  const std::int64_t distinct = between(random, 1, 3);
  BlockLayout layout = test::random_blocks(random, test::random_sizes(random, 60), distinct);
  const std::int64_t heads = between(random, 2, 6);
  for (std::int64_t head = 0; head < heads; ++head) {
    layout.head_map.push_back(
        static_cast<std::int32_t>(random->below(static_cast<std::uint32_t>(distinct))));
  }
  return layout;
}

// Whether each query head has the same blocks and flags in both.
bool same_blocks(const BlockLayout& a, const BlockLayout& b) {
  return difference(a, b).text.empty();
}

TEST_CASE("sharing and parting change no head") {
  Random random(51);
  for (int i = 0; i < 200; ++i) {
    const BlockLayout layout = random_shared(&random);
    const BlockLayout parted = part_heads(layout);
    const BlockLayout shared = share_heads(parted);
    parted.validate();
    shared.validate();
    CHECK(parted.heads == layout.query_heads());
    CHECK(parted.head_map.empty());
    CHECK(shared.query_heads() == layout.query_heads());
    CHECK(same_blocks(parted, layout));
    CHECK(same_blocks(shared, layout));
    CHECK(share_heads(shared) == shared);
    CHECK(part_heads(shared) == parted);
    for (std::int64_t a = 0; a < shared.heads; ++a) {
      for (std::int64_t b = 0; b < a; ++b) {
        // No two stored heads are equal.
        const auto query_of = [&](std::int64_t head) {
          return std::find(shared.head_map.begin(), shared.head_map.end(), head) -
                 shared.head_map.begin();
        };
        if (shared.head_map.empty()) continue;
        CHECK_FALSE(head_of(shared, query_of(a)) == head_of(shared, query_of(b)));
      }
    }
    for (std::int64_t head = 0; head < layout.query_heads(); ++head) {
      CHECK(head_of(layout, head) == head_of(parted, head));
    }
    CHECK(code_of([&] { head_of(layout, layout.query_heads()); }) == ErrorCode::kInvalidArgument);
    CHECK(code_of([&] { head_of(layout, -1); }) == ErrorCode::kInvalidArgument);
  }
}

TEST_CASE("memory goes by the distinct heads") {
  BlockLayout layout{.block_rows = 8,
                     .block_columns = 8,
                     .seq_q = 64,
                     .seq_k = 64,
                     .heads = 32,
                     .indptr = {0},
                     .indices = {},
                     .partial = {}};
  for (int head = 0; head < 32; ++head) {
    for (int row = 0; row < 8; ++row) {
      layout.indices.push_back(head % 2);
      layout.indptr.push_back(static_cast<std::int64_t>(layout.indices.size()));
    }
  }
  const BlockLayout shared = share_heads(layout);
  CHECK(shared.heads == 2);
  CHECK(shared.query_heads() == 32);
  CHECK(shared.indices.size() == 16);
  CHECK(block_density(shared).value == block_density(layout).value);
}

TEST_CASE("the algebra works on shared heads as on parted ones") {
  Random random(52);
  for (int i = 0; i < 100; ++i) {
    const BlockLayout a = random_shared(&random);
    BlockLayout b = test::random_blocks(&random, a, random.below(2) ? a.query_heads() : 1);
    b.head_map.clear();
    if (b.heads == 1) b.head_map = {};
    const BlockLayout parted = part_heads(a);
    CHECK(same_blocks(unite(a, b), unite(parted, b)));
    CHECK(same_blocks(intersect(b, a), intersect(b, parted)));
    CHECK(same_blocks(subtract(a, b), subtract(parted, b)));
    CHECK(same_blocks(transpose(a), transpose(parted)));
    CHECK(same_blocks(reblock(a, 7, 9), reblock(parted, 7, 9)));
    const Segment rows[] = {{a.seq_q / 2, a.seq_q - a.seq_q / 2}};
    const Segment keys[] = {{0, a.seq_k / 2}};
    CHECK(same_blocks(slice(a, rows, keys), slice(parted, rows, keys)));
    CHECK(unite(a, b).query_heads() == a.query_heads());
    CHECK(statistics(a).block_density.value ==
          doctest::Approx(statistics(parted).block_density.value));
    CHECK(reachability(a, 3) == reachability(parted, 3));
    BlockLayout more, less;
    const ErrorCode code = code_of([&] { more = with_density(a, Density{0.5}); });
    CHECK(code_of([&] { less = with_density(parted, Density{0.5}); }) == code);
    if (code == ErrorCode{0}) CHECK(same_blocks(more, less));
  }
}

}  // namespace
}  // namespace annulus
