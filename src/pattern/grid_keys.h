#ifndef ANNULUS_PATTERN_GRID_KEYS_H_
#define ANNULUS_PATTERN_GRID_KEYS_H_

// leaf_keys() of the leaves that see positions as the cells of a grid, row by row: axial, natten.

#include "pattern/leaf_keys.h"

namespace annulus::pattern {

// Add to *out, which begins empty.
void axial_keys(const Node& leaf, Interval queries, Interval universe, Wanted wanted,
                IntervalSet* out);
void natten_keys(const Node& leaf, Interval queries, Interval universe, Wanted wanted,
                 IntervalSet* out);

// As coarse_leaf_keys. Requires: a row of the grid is no longer than the grain.
bool coarse_axial_keys(const Node& leaf, Interval queries, Interval universe, IntervalSet* all,
                       IntervalSet* any, IntervalSet* mixed);

}  // namespace annulus::pattern

#endif  // ANNULUS_PATTERN_GRID_KEYS_H_
