#ifndef ANNULUS_AUTOTUNE_STATISTICS_H_
#define ANNULUS_AUTOTUNE_STATISTICS_H_

// What several measurements of one thing say. Times of a GPU have a long tail and no known
// distribution, so everything here rests on the order of the values alone.

#include <vector>

namespace annulus::autotune {

double median(std::vector<double> values);  // 0 when empty

// The median, and an interval that holds the true one with at least 95 % whatever the distribution:
// between the k-th values from either end, with the largest k for which that is so. Under six
// values there is none, and the interval is unbounded. Values that are exact, as predicted ones,
// are one value with an interval of no width.
struct Interval {
  double low = 0;
  double middle = 0;
  double high = 0;
};
Interval median_interval(std::vector<double> values);

}  // namespace annulus::autotune

#endif  // ANNULUS_AUTOTUNE_STATISTICS_H_
