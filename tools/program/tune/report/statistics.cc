#include "program/tune/report/statistics.h"

#include <algorithm>
#include <cmath>

namespace annulus::program::report {
namespace {

std::vector<double> ranks_of(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, {}, [&](std::size_t i) { return values[i]; });
  std::vector<double> ranks(values.size());
  for (std::size_t first = 0, last = 0; first < order.size(); first = last) {
    while (last < order.size() && values[order[last]] == values[order[first]]) ++last;
    for (std::size_t i = first; i < last; ++i) {
      ranks[order[i]] = static_cast<double>(first + last - 1) / 2;
    }
  }
  return ranks;
}

}  // namespace

double median(std::vector<double> values) {
  const std::size_t half = values.size() / 2;
  std::ranges::sort(values);
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

std::optional<double> rank_correlation(const std::vector<std::pair<double, double>>& pairs) {
  if (pairs.size() < 3) return std::nullopt;
  std::vector<double> first, second;
  for (const auto& [a, b] : pairs) {
    first.push_back(a);
    second.push_back(b);
  }
  first = ranks_of(first);
  second = ranks_of(second);
  const double middle = static_cast<double>(pairs.size() - 1) / 2;
  double both = 0, of_first = 0, of_second = 0;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    both += (first[i] - middle) * (second[i] - middle);
    of_first += (first[i] - middle) * (first[i] - middle);
    of_second += (second[i] - middle) * (second[i] - middle);
  }
  if (of_first == 0 || of_second == 0) return std::nullopt;
  return both / std::sqrt(of_first * of_second);
}

}  // namespace annulus::program::report
