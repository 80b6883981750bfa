#ifndef ANNULUS_AUTOTUNE_STATISTICS_H_
#define ANNULUS_AUTOTUNE_STATISTICS_H_

// Statistics of repeated measurements. Times of a GPU have a long tail and no known distribution,
// so everything here uses only the order of the values.

#include <vector>

#include "tuned/trial.h"

namespace annulus::autotune {

double median(std::vector<double> values);  // 0 when empty

// The standard error of the median, about: from the median of the distances to it, as if the values
// were normal, of which a few outliers change nothing. 0 for fewer than two values.
double error_of_median(const std::vector<double>& values);

// The median, and an interval that holds the true median with a probability of at least 95 % for
// any distribution: between the k-th values from either end, with the largest k for which that
// holds. For fewer than six values there is no such k, and the interval is unbounded. Predictions
// are exact and do not come here: the search gives them an interval of no width.
tuned::Interval median_interval(std::vector<double> values);

}  // namespace annulus::autotune

#endif  // ANNULUS_AUTOTUNE_STATISTICS_H_
