#ifndef ANNULUS_PROGRAM_TUNE_REPORT_STATISTICS_H_
#define ANNULUS_PROGRAM_TUNE_REPORT_STATISTICS_H_

#include <optional>
#include <utility>
#include <vector>

namespace annulus::program::report {

// The median. It is the mean of the two middle values if the number of values is even. Requires: at
// least one value.
double median(std::vector<double> values);

// Spearman's rank correlation, where tied values share their ranks. It is 1 if both sides always
// rise together. Nothing for fewer than three pairs, or if all values of one side are equal.
std::optional<double> rank_correlation(const std::vector<std::pair<double, double>>& pairs);

}  // namespace annulus::program::report

#endif  // ANNULUS_PROGRAM_TUNE_REPORT_STATISTICS_H_
