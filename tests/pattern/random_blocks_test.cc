#include "pattern/leaves/random.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "base/random.h"
#include "pattern/random_pattern.h"
#include "support/options.h"

namespace annulus::pattern {
namespace {

std::vector<std::int64_t> choose(std::int64_t c, std::int64_t seed, std::int64_t layer,
                                 std::int64_t head, std::int64_t row, std::int64_t columns) {
  const leaves::Random leaf = {.count = c, .seed = seed, .block = 1};
  std::vector<std::int64_t> chosen;
  leaf.choose(head, row, columns, {.seq_k = columns, .layer = layer}, &chosen);
  return chosen;
}

using List = std::vector<std::int64_t>;

// The authors' known answer for a counter and a key of zeros begins with 6627e8d5 e169c58d. So the
// first draw of seed 0, layer 0, head 0 and row 0 is 0xe169c58d6627e8d5 of 2^64.
TEST_CASE("the first draw is the known answer of the generator") {
  const double share = 0xe169c58d6627e8d5p-64;
  for (const std::int64_t columns : {2, 10, 64, 1000, 1 << 20}) {
    CHECK(choose(1, 0, 0, 0, 0, columns) ==
          List{static_cast<std::int64_t>(share * static_cast<double>(columns))});
  }
}

// The values come from a second implementation, in Python.
TEST_CASE("golden choices, the same on every machine") {
  CHECK(choose(3, 0, 0, 0, 0, 64) == List{20, 22, 54});
  CHECK(choose(3, 0, 0, 0, 1, 64) == List{33, 56, 62});
  CHECK(choose(3, 0, 0, 1, 0, 64) == List{47, 53, 58});
  CHECK(choose(3, 0, 1, 0, 0, 64) == List{4, 19, 54});
  CHECK(choose(3, 1, 0, 0, 0, 64) == List{35, 55, 62});
  CHECK(choose(8, 123456789012345, 31, 15, -7, 10) == List{0, 1, 3, 4, 5, 6, 7, 9});
  CHECK(choose(5, 42, 2, 3, 1000000, 16384) == List{426, 4347, 5385, 5864, 8238});
  CHECK(choose(4, 7, 0, 0, 9, 4) == List{0, 1, 2, 3});
}

TEST_CASE("choices are distinct, in range and as many as there can be, and all columns come up") {
  std::vector<int> times(40);
  for (std::int64_t row = 0; row < 2000; ++row) {
    const List chosen = choose(row % 7, 3, 0, row % 5, row, 40);
    CHECK(static_cast<std::int64_t>(chosen.size()) == row % 7);
    CHECK(std::is_sorted(chosen.begin(), chosen.end()));
    CHECK(std::adjacent_find(chosen.begin(), chosen.end()) == chosen.end());
    for (const std::int64_t column : chosen) {
      REQUIRE(column >= 0);
      REQUIRE(column < 40);
      ++times[static_cast<std::size_t>(column)];
    }
  }
  // 6000 draws give 150 each, within 6 standard deviations of 12.
  for (const int count : times) CHECK(std::abs(count - 150) < 72);
  CHECK(choose(9, 3, 0, 0, 0, 4) == List{0, 1, 2, 3});
  CHECK(choose(9, 3, 0, 0, 0, 0).empty());
}

// Floyd's algorithm, as the header describes it.
List chosen_by_the_book(std::int64_t c, std::uint32_t row, std::int64_t columns) {
  std::set<std::int64_t> taken;
  for (std::int64_t d = 0; d < c; ++d) {
    const std::int64_t top = columns - c + d;
    const auto words = base::philox({static_cast<std::uint32_t>(d), row, 0, 0}, {3, 0});
    const std::uint64_t u = words[0] | std::uint64_t{words[1]} << 32;
    __extension__ using Wide = unsigned __int128;
    const auto t = static_cast<std::int64_t>(Wide{u} * static_cast<std::uint64_t>(top + 1) >> 64);
    if (!taken.insert(t).second) taken.insert(top);
  }
  return {taken.begin(), taken.end()};
}

TEST_CASE("choices are those of the algorithm, few of many, nearly all, and thousands") {
  const std::int64_t sizes[][2] = {{1, 2},       {2, 3},       {63, 64},       {64, 65},
                                   {64, 100},    {64, 16384},  {64, 32767},    {64, 32768},
                                   {200, 65536}, {200, 65537}, {64, 1 << 24},  {100, 5000},
                                   {999, 1000},  {3000, 9000}, {65536, 65600}, {5000, 1ll << 40}};
  for (const auto& [c, columns] : sizes) {
    for (std::uint32_t row = 0; row < 5; ++row) {
      CAPTURE(c);
      CAPTURE(columns);
      CHECK(choose(c, 3, 0, 0, row, columns) == chosen_by_the_book(c, row, columns));
    }
  }
}

TEST_CASE("a pattern chooses by the whole sequence, whatever part of it is asked about") {
  const Pattern pattern = random(2, 5, 16);
  const PatternContext whole = {.seq_k = 200, .layer = 1};  // 13 blocks
  int seen = 0;
  for (std::int64_t k = 0; k < 250; ++k) seen += pattern.visible(3, 40, k, whole);
  const bool has_last = pattern.visible(3, 40, 199, whole);
  CHECK(seen == 32);
  CHECK_FALSE(pattern.visible(3, 40, 208, whole));
  CHECK_FALSE(pattern.visible(3, 40, -1, whole));
  CHECK(pattern.visible(3, 40, 207, whole) == has_last);  // a block continues after the end
  std::string message;
  CHECK(test::code_of([&] { pattern.visible(0, 0, 0); }, &message) == ErrorCode::kInvalidArgument);
  CHECK(message.find("the number of its keys") != std::string::npos);
  CHECK(test::code_of([&] { pattern.visible(0, 0, 0, {.seq_k = 9, .layer = -1}); }) ==
        ErrorCode::kInvalidArgument);
}

TEST_CASE("heads that differ are counted") {
  CHECK(causal().distinct_heads(8) == 1);
  CHECK(random(1, 2, 3).distinct_heads(8) == 8);
  CHECK(segment(64, 4).distinct_heads(8) == 4);
  CHECK(segment(64, 4).distinct_heads(3) == 3);
  CHECK((segment(64, 4) & heads({causal(), dense(), sink(1)})).distinct_heads(32) == 12);
  CHECK(sum({segment(64, 4), segment(64, 6)}).distinct_heads(100) == 12);
  CHECK((segment(1 << 30, 1 << 30) | causal()).distinct_heads(5) == 5);
  base::Random random(test::seed_of(1));
  const Pattern three = blocks(test::random_layout(&random, 20, 20, 3));
  CHECK((three & segment(4, 2)).distinct_heads(3) == 3);
  CHECK(test::code_of([&] { three.distinct_heads(6); }) == ErrorCode::kInvalidArgument);
}

TEST_CASE("branches of a sum") {
  CHECK(causal().branches() == std::vector<Pattern>{causal()});
  CHECK(sum({causal(), sink(2)}).branches() == std::vector<Pattern>{causal(), sink(2)});
  const Pattern both = sum({causal() & sink(4), window(0, 1)});
  CHECK(both.visible(0, 2, 1));
  CHECK(both.visible(0, 2, 3));
  CHECK_FALSE(both.visible(0, 2, 4));
}

}  // namespace
}  // namespace annulus::pattern
