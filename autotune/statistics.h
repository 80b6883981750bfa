#ifndef ANNULUS_AUTOTUNE_STATISTICS_H_
#define ANNULUS_AUTOTUNE_STATISTICS_H_

// Statistics of repeated measurements. The times of a GPU have a long tail and no known
// distribution, so all functions use only the order of the values.

#include <vector>

#include "tuned/trial.h"

namespace annulus::autotune {

double median(std::vector<double> values);  // 0 if there are no values

// An estimate of the standard error of the median. It uses the median of the distances to the
// median, as for normally distributed values, so that a few outliers have no effect. 0 for fewer
// than two values.
double error_of_median(const std::vector<double>& values);

// The median, and an interval that contains the true median with a probability of at least 95 % for
// any distribution. Its ends are the k-th values from either end, with the largest k that gives
// this probability. For fewer than six values there is no such k, and the interval is unbounded.
// Predictions are exact, and the search does not call this for them: their interval has no width.
tuned::Interval median_interval(std::vector<double> values);

}  // namespace annulus::autotune

#endif  // ANNULUS_AUTOTUNE_STATISTICS_H_
