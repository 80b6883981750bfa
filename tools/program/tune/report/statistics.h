#ifndef ANNULUS_PROGRAM_TUNE_REPORT_STATISTICS_H_
#define ANNULUS_PROGRAM_TUNE_REPORT_STATISTICS_H_

#include <optional>
#include <utility>
#include <vector>

namespace annulus::program::report {

// The mean of the two values in the middle if their number is even. Requires: at least one value.
double median(std::vector<double> values);

// Spearman's rank correlation, with ties sharing their ranks: 1 where both rise together. Nothing
// for fewer than three pairs, and where all of one side are equal.
std::optional<double> rank_correlation(const std::vector<std::pair<double, double>>& pairs);

}  // namespace annulus::program::report

#endif  // ANNULUS_PROGRAM_TUNE_REPORT_STATISTICS_H_
