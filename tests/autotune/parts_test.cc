#include "autotune/parts.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "attention/tiles/tile_counts.h"
#include "support/random_problem.h"

namespace annulus::autotune {
namespace {

Problem problem(std::int64_t seq_q, std::int64_t seq_k, const Pattern& pattern) {
  Problem made;
  made.batch = 4;
  made.heads = 32;
  made.kv_heads = 8;
  made.seq_q = seq_q;
  made.seq_k = seq_k;
  made.dim_qk = made.dim_v = 64;
  made.pattern = pattern;
  return made;
}

double pairs(const Problem& part) {
  double tiles = 0;
  for (const Pattern& branch : part.pattern.branches()) {
    Problem alone = part;
    alone.pattern = branch;
    tiles += static_cast<double>(attention::count_tiles(alone, 128, 128).tiles());
  }
  return tiles * 128 * 128;
}

// Checks that the rows and keys of the part lie in the whole, at their own positions and on tile
// edges.
void check_inside(const Problem& part, const Problem& whole) {
  validate(part);
  const std::int64_t first_row = part.q_position() - whole.q_position();
  const std::int64_t first_key = part.k_position() - whole.k_position();
  CHECK(first_row % kPartRows == 0);
  CHECK(first_key % 128 == 0);
  CHECK(first_row >= 0);
  CHECK(first_row + part.seq_q <= whole.seq_q);
  CHECK(first_key >= 0);
  CHECK(first_key + part.seq_k <= whole.seq_k);
  CHECK(part.seq_q > 0);
  CHECK(part.dim_qk == whole.dim_qk);
  CHECK(part.dtype == whole.dtype);
  CHECK(part.carry_in == whole.carry_in);
  CHECK(part.carry_out == whole.carry_out);
  CHECK(part.want_lse == !whole.carry_out);
  CHECK(part.heads % part.kv_heads == 0);
  CHECK(part.pattern == whole.pattern);
}

TEST_CASE("parts of a problem whose batches differ have one batch of each kind") {
  const Problem whole = problem(100, 200, batches({window(3, 0), causal(), dense()}));
  for (const double most : {8e6, 1e4}) {
    for (const Problem& part : choose_parts(whole, most, 1)) {
      check_inside(part, whole);
      CHECK(part.batch == 3);
    }
  }
  Problem two = whole;
  two.batch = 2;
  CHECK(choose_parts(two, 8e6, 1).front().batch == 2);
  // Strips of long problems reach as far as the batch that sees furthest.
  const Problem longer = problem(4096, 4096, batches({window(3, 0), window(3, 900)}));
  for (const Problem& part : choose_parts(longer, 4e6, 1)) {
    check_inside(part, longer);
    CHECK(part.batch == 2);
    const std::int64_t end = std::min(part.q_position() + part.seq_q + 900, std::int64_t{4096});
    CHECK(part.k_position() + part.seq_k >= end);
  }
}

TEST_CASE("the pairs of a sum are those of its branches together") {
  const Problem one = problem(1024, 1024, dense());
  const Problem two = problem(1024, 1024, sum({dense(), dense()}));
  const double most = pairs(choose_parts(one, 1e9, 1).front());
  CHECK(choose_parts(one, most, 1).size() == 1);
  CHECK(choose_parts(one, most, 1).front().heads > choose_parts(two, most, 1).front().heads);
  for (const Problem& part : choose_parts(problem(8192, 8192, sum({causal(), dense()})), 4e6, 1)) {
    check_inside(part, problem(8192, 8192, sum({causal(), dense()})));
    CHECK(pairs(part) <= 4e6);
  }
}

TEST_CASE("a small problem is one part with several heads and batches") {
  const Problem whole = problem(100, 200, causal());
  const std::vector<Problem> parts = choose_parts(whole, 8e6, 1);
  REQUIRE(parts.size() == 1);
  check_inside(parts[0], whole);
  CHECK(parts[0].seq_q == 100);
  CHECK(parts[0].seq_k == 200);
  CHECK(parts[0].batch == 2);
  CHECK(parts[0].kv_heads == 2);
  CHECK(parts[0].heads == 8);
}

TEST_CASE("a long one is its first and last rows and some between, within the pairs allowed") {
  for (const char* text : {"dense", "causal", "window(255,0)", "global(16) | window(100,100)",
                           "~dense", "documents([1000, 70000])"}) {
    for (const std::int64_t seq : {5'000, 65'537, 1'000'000}) {
      for (const double most : {5e5, 8e6}) {
        CAPTURE(text);
        CAPTURE(seq);
        const Problem whole = problem(seq, seq, Pattern::parse(text));
        const std::vector<Problem> parts = choose_parts(whole, most, 1);
        double all = 0;
        for (const Problem& part : parts) {
          check_inside(part, whole);
          all += pairs(part);
        }
        // Two blocks of keys are the minimum. Larger parts use the permitted amount.
        CHECK(all <= std::max(most, 4.0 * 256 * 3 * 128) * 1.2);
        const std::int64_t first = parts.front().q_position() - whole.q_position();
        const std::int64_t last =
            parts.back().q_position() - whole.q_position() + parts.back().seq_q;
        CHECK(first == 0);
        CHECK(last == seq);
      }
    }
  }
}

TEST_CASE("the keys of a strip end with what its rows see") {
  const Problem whole = problem(100'000, 100'000, causal());
  for (const Problem& part : choose_parts(whole, 1e6, 1)) {
    CHECK(part.k_position() + part.seq_k >= part.q_position() + part.seq_q);
    CHECK(pairs(part) > 0);
  }
}

TEST_CASE("one query over many keys, and patterns that name heads, keep what they need") {
  const Problem decode = problem(1, 300'000, causal());
  for (const Problem& part : choose_parts(decode, 1e6, 1)) {
    check_inside(part, decode);
    CHECK(part.seq_q == 1);
  }
  BlockLayout layout;
  layout.block_rows = layout.block_columns = 128;
  layout.seq_q = layout.seq_k = 4096;
  layout.heads = 32;
  layout.indptr.push_back(0);
  for (std::int64_t row = 0; row < 32 * 32; ++row) {
    layout.indices.push_back(static_cast<std::int32_t>(row % 32));
    layout.indptr.push_back(static_cast<std::int64_t>(layout.indices.size()));
  }
  const Problem whole = problem(4096, 4096, blocks(layout));
  for (const double most : {1e5, 1e9}) {
    for (const Problem& part : choose_parts(whole, most, 1)) {
      check_inside(part, whole);
      CHECK(part.heads == 32);
    }
  }
}

TEST_CASE("any problem has parts that are valid") {
  for (std::uint64_t index = 0; index < 200; ++index) {
    const Problem whole = test::random_problem(21, index);
    if (whole.batch == 0 || whole.seq_q == 0) continue;
    CAPTURE(whole.pattern.to_string());
    for (const double most : {2e4, 1e7}) {
      for (const Problem& part : choose_parts(whole, most, 1)) check_inside(part, whole);
    }
  }
}

}  // namespace
}  // namespace annulus::autotune
