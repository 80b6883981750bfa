#include "autotune/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace annulus::autotune {

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const std::size_t half = values.size() / 2;
  std::sort(values.begin(), values.end());
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double error_of_median(const std::vector<double>& values) {
  if (values.size() < 2) return 0;
  const double middle = median(values);
  std::vector<double> distances;
  for (const double value : values) distances.push_back(std::abs(value - middle));
  // a normal variable's standard deviation over its median distance to the median
  constexpr double kDeviation = 1.4826;
  constexpr double kOfMedian =
      1.2533;  // the standard error of the median over the standard error of the mean
  return kDeviation * kOfMedian * median(std::move(distances)) /
         std::sqrt(static_cast<double>(values.size()));
}

tuned::Interval median_interval(std::vector<double> values) {
  constexpr double kTail = 0.025;
  tuned::Interval interval;
  interval.middle = median(values);
  interval.low = -std::numeric_limits<double>::infinity();
  interval.high = std::numeric_limits<double>::infinity();
  if (values.empty()) return interval;
  std::sort(values.begin(), values.end());
  // The true median is below the k-th value exactly if fewer than k of n values are below the
  // median. That has the same probability as fewer than k heads in n throws of a coin. Each side
  // may have half of 5 %.
  const auto n = static_cast<double>(values.size());
  double probability = std::pow(0.5, n);  // the probability of no head
  double tail = probability;
  std::size_t k = 0;
  while (tail <= kTail && 2 * (k + 1) <= values.size()) {
    ++k;
    probability *= (n - static_cast<double>(k) + 1) / static_cast<double>(k);
    tail += probability;
  }
  if (k == 0) return interval;
  interval.low = values[k - 1];
  interval.high = values[values.size() - k];
  return interval;
}

}  // namespace annulus::autotune
