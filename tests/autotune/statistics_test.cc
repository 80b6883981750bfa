#include "autotune/statistics.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "base/random.h"

namespace annulus::autotune {
namespace {

TEST_CASE("the median is the middle, or between the two middle ones") {
  CHECK(median({}) == 0);
  CHECK(median({3}) == 3);
  CHECK(median({5, 1, 3}) == 3);
  CHECK(median({4, 1, 3, 2}) == 2.5);
}

TEST_CASE("an interval needs six values, and ends at values of the sample") {
  for (int n = 0; n < 6; ++n) {
    const tuned::Interval none =
        median_interval(std::vector<double>(static_cast<std::size_t>(n), 1.0));
    CHECK(std::isinf(none.low));
    CHECK(std::isinf(none.high));
  }
  // With six or seven values only the outermost values give 95 % (1 - 2 / 2^6). With 25 values the
  // 8th from either end does: P(fewer than 8 heads of 25) is 0.022, and P(fewer than 9) is 0.054.
  const tuned::Interval seven = median_interval({7, 1, 6, 2, 5, 3, 4});
  CHECK(seven.low == 1);
  CHECK(seven.middle == 4);
  CHECK(seven.high == 7);
  std::vector<double> values;
  for (int i = 1; i <= 25; ++i) values.push_back(i);
  const tuned::Interval many = median_interval(values);
  CHECK(many.low == 8);
  CHECK(many.middle == 13);
  CHECK(many.high == 18);
}

TEST_CASE("the interval holds the true median as often as it says, also of skewed values") {
  base::Random random(11);
  constexpr int kTrials = 4000;
  for (const int n : {7, 25}) {
    int held = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      std::vector<double> values;
      for (int i = 0; i < n; ++i)
        values.push_back(std::exp(2.0 * static_cast<double>(random.normal())));
      const tuned::Interval interval = median_interval(values);
      held += interval.low <= 1 && 1 <= interval.high;
    }
    CAPTURE(n);
    CHECK(held >= 0.945 * kTrials);
  }
}

TEST_CASE("the error of a median falls with the square root of the number of values") {
  CHECK(error_of_median({}) == 0);
  CHECK(error_of_median({3}) == 0);
  CHECK(error_of_median({5, 5, 5, 5}) == 0);
  const std::vector<double> few = {1, 2, 3, 4, 5};  // distances 2, 1, 0, 1, 2
  CHECK(error_of_median(few) == doctest::Approx(1.4826 * 1.2533 / std::sqrt(5)));
  std::vector<double> four_times = few;
  for (int i = 0; i < 3; ++i) four_times.insert(four_times.end(), few.begin(), few.end());
  CHECK(error_of_median(four_times) == doctest::Approx(error_of_median(few) / 2));
  CHECK(error_of_median({1, 2, 3, 4, 500}) == error_of_median(few));
}

}  // namespace
}  // namespace annulus::autotune
