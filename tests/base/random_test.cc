#include "base/random.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace annulus::base {
namespace {

using Words = std::array<std::uint32_t, 4>;

// The known answers of the authors (Random123, kat_vectors, philox4x32 with 10 rounds).
TEST_CASE("philox gives the published answers") {
  CHECK(philox({0, 0, 0, 0}, {0, 0}) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}) ==
        Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("counters that are computed side by side give what each of them gives") {
  for (const std::uint32_t first : {0u, 5u, 0xfffffffau}) {
    for (const std::size_t count : {0, 1, 7, 8, 9, 64, 67}) {
      const Words counter = {first, 0x85a308d3, 0xf3198a2e, 0x03707344};
      std::vector<std::uint64_t> all(count);
      philox(counter, {0xa4093822, 0x299f31d0}, all);
      for (std::size_t i = 0; i < count; ++i) {
        const Words words =
            philox({first + static_cast<std::uint32_t>(i), counter[1], counter[2], counter[3]},
                   {0xa4093822, 0x299f31d0});
        CHECK(all[i] == (words[0] | std::uint64_t{words[1]} << 32));
      }
    }
  }
}

TEST_CASE("a sequence is the counter's blocks, whatever is drawn from it") {
  Random random(0x299f31d0a4093822u);
  for (std::uint32_t block = 0; block < 3; ++block) {
    for (std::uint32_t word : philox({block, 0, 0, 0}, {0xa4093822, 0x299f31d0})) {
      CHECK(random.next() == word);
    }
  }
}

TEST_CASE("draws stay in their range and spread over it") {
  Random random(7);
  std::array<int, 10> counts{};
  double sum = 0, squares = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::uint32_t below = random.below(10);
    REQUIRE(below < 10);
    ++counts[below];
    const double uniform = random.uniform();
    REQUIRE(uniform >= 0);
    REQUIRE(uniform < 1);
    const float normal = random.normal();
    REQUIRE(std::isfinite(normal));
    sum += normal;
    squares += double{normal} * normal;
  }
  for (int count : counts) CHECK(std::abs(count - 2000) < 5 * 43);  // 5 standard deviations
  CHECK(std::abs(sum / 20000) < 0.04);
  CHECK(std::abs(squares / 20000 - 1) < 0.06);
  CHECK(random.below(1) == 0);
}

}  // namespace
}  // namespace annulus::base
