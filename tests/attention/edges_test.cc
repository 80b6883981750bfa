// Parameters beyond the sequence, and very short lengths, on the device that --device names,
// compared with the oracle.

#include <doctest/doctest.h>

#include "attention/on_device.h"

namespace annulus {
namespace {

TEST_CASE("parameters beyond the sequence are as good as its length, and one token sees itself") {
  const Pattern patterns[] = {
      causal() & window(1000000000, 0) & documents({-70, 0, 1, 9, 400000}),
      window(900000, 900000) | global({-3, 2, 7000000}) | vertical_slash({600000}, {-800000, 3}),
      strided(5000, 0, 100000) & ~sink(0) & prefix(1 << 29),
      segment(100000, 1) & hierarchical({{1, 100000, 1000}}),
  };
  const std::int64_t lengths[][2] = {{0, 0}, {0, 5}, {5, 0}, {1, 1}, {1, 70}, {70, 1}, {9, 9}};
  for (const Pattern& pattern : patterns) {
    for (const auto& [seq_q, seq_k] : lengths) {
      Problem problem = test::problem_of(seq_q, seq_k, 32, 32, pattern);
      problem.heads = 2;
      const test::Case c = test::make_case(problem, 8);
      CAPTURE(c.text);
      test::check(c, test::run_case(test::device(), c));
    }
  }
}

}  // namespace
}  // namespace annulus
