#ifndef ANNULUS_PATTERN_LEAVES_GRID_H_
#define ANNULUS_PATTERN_LEAVES_GRID_H_

// Treats positions as the cells of a grid, row by row, for axial and natten.

#include <cstdint>

#include "pattern/interval.h"
#include "pattern/positions.h"

namespace annulus::pattern::leaves {

// The cell of a position in a grid whose rows have `width` cells. Position 0 is the first cell.
struct Cell {
  std::int64_t row = 0;
  std::int64_t column = 0;
  bool inside = false;
};
inline Cell cell_of(std::int64_t height, std::int64_t width, std::int64_t position) {
  const std::int64_t row = floor_div(position, width);
  return {row, floor_mod(position, width), row >= 0 && row < height};
}

// A grid and the part of a range of queries that lies on it.
struct Grid {
  std::int64_t height;
  std::int64_t width;
  Interval queries;     // the queries that are on the grid
  bool whole;           // whether all queries are on the grid
  std::int64_t top;     // row of the first query
  std::int64_t bottom;  // row of the last query

  Grid(std::int64_t grid_height, std::int64_t grid_width, Interval all)
      : height(grid_height),
        width(grid_width),
        queries(intersection(all, {0, product(height, width)})),
        whole(queries == all),
        top(queries.begin / width),
        bottom((queries.end - 1) / width) {}

  std::int64_t column(std::int64_t position) const { return position % width; }
  Interval cells() const { return {0, product(height, width)}; }
  // The positions of rows [first, last].
  Interval rows(std::int64_t first, std::int64_t last) const {
    return {product(first, width), product(last + 1, width)};
  }
};

}  // namespace annulus::pattern::leaves

#endif  // ANNULUS_PATTERN_LEAVES_GRID_H_
