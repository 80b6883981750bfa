#include "pattern/grid_keys.h"

#include <algorithm>

#include "pattern/positions.h"

namespace annulus::pattern {
namespace {

// A grid and the part of a range of queries that lies on it.
struct Grid {
  std::int64_t height;
  std::int64_t width;
  Interval queries;     // on the grid
  bool whole;           // all queries are
  std::int64_t top;     // row of the first query
  std::int64_t bottom;  // and of the last one

  Grid(const Node& leaf, Interval all)
      : height(leaf.first),
        width(leaf.second),
        queries(intersection(all, {0, product(height, width)})),
        whole(queries == all),
        top(queries.begin / width),
        bottom((queries.end - 1) / width) {}

  std::int64_t column(std::int64_t position) const { return position % width; }
  Interval cells() const { return {0, product(height, width)}; }
  // Positions of rows [first, last].
  Interval rows(std::int64_t first, std::int64_t last) const {
    return {product(first, width), product(last + 1, width)};
  }
};

void add(IntervalSet* out, Interval universe, Interval keys) {
  append(out, intersection(keys, universe));
}

// Columns [first, last] of rows [top, bottom], as far as they are in the universe.
void append_columns(const Grid& grid, std::int64_t top, std::int64_t bottom, std::int64_t first,
                    std::int64_t last, Interval universe, IntervalSet* out) {
  if (universe.empty()) return;
  top = std::max(top, floor_div(universe.begin, grid.width));
  bottom = std::min(bottom, floor_div(universe.end - 1, grid.width));
  for (std::int64_t row = top; row <= bottom; ++row) {
    const std::int64_t begin = grid.rows(row, row).begin;
    add(out, universe, {begin + first, begin + last + 1});
  }
}

// Columns that the queries, fewer than a row has, stand in.
void append_crossing(const Grid& grid, std::int64_t top, std::int64_t bottom, Interval universe,
                     IntervalSet* out) {
  const std::int64_t first = grid.column(grid.queries.begin);
  const std::int64_t last = grid.column(grid.queries.end - 1);
  if (first <= last) return append_columns(grid, top, bottom, first, last, universe, out);
  if (universe.empty()) return;
  top = std::max(top, floor_div(universe.begin, grid.width));
  bottom = std::min(bottom, floor_div(universe.end - 1, grid.width));
  for (std::int64_t row = top; row <= bottom; ++row) {
    const Interval cells = grid.rows(row, row);
    add(out, universe, {cells.begin, cells.begin + last + 1});
    add(out, universe, {cells.begin + first, cells.end});
  }
}

// The keys of one row that all queries see. A query of another row sees one column of it, and two
// that are neighbours see different ones: at most one may stand before the row and one behind it.
void append_common(const Grid& grid, std::int64_t row, Interval universe, IntervalSet* out) {
  const Interval cells = grid.rows(row, row);
  const std::int64_t before = std::max<std::int64_t>(cells.begin - grid.queries.begin, 0);
  const std::int64_t behind = std::max<std::int64_t>(grid.queries.end - cells.end, 0);
  if (before == 0 && behind == 0) return add(out, universe, cells);
  if (before == 1 && behind == 0) return add(out, universe, {cells.end - 1, cells.end});
  if (before == 0 && behind == 1) return add(out, universe, {cells.begin, cells.begin + 1});
}

// The cells along one axis that a query at `at` sees.
Interval neighbourhood(std::int64_t at, std::int64_t n, std::int64_t length) {
  const std::int64_t centre = std::clamp(at, n / 2, length - 1 - n / 2);
  return {centre - n / 2, centre + n / 2 + 1};
}

}  // namespace

void axial_keys(const Node& leaf, Interval queries, Interval universe, Wanted wanted,
                IntervalSet* out) {
  const Grid grid(leaf, queries);
  if (grid.queries.empty()) return;
  if (wanted == Wanted::kAll && !grid.whole) return;
  const std::int64_t count = grid.queries.size();
  // One column, or in any-wise a query in every column: the whole grid.
  if (grid.width == 1 || (wanted == Wanted::kAny && count >= grid.width)) {
    return add(out, universe, grid.cells());
  }
  if (wanted == Wanted::kAll && count > 1) {
    if (count > grid.width + 1) return;
    for (std::int64_t row = grid.top; row <= grid.bottom; ++row) {
      append_common(grid, row, universe, out);
    }
    return;
  }
  append_crossing(grid, 0, grid.top - 1, universe, out);
  add(out, universe, grid.rows(grid.top, grid.bottom));
  append_crossing(grid, grid.bottom + 1, grid.height - 1, universe, out);
}

bool coarse_axial_keys(const Node& leaf, Interval queries, Interval universe, IntervalSet* all,
                       IntervalSet* any, IntervalSet* mixed) {
  const Grid grid(leaf, queries);
  if (grid.queries.empty() || grid.queries.size() >= grid.width) return false;
  for (IntervalSet* set : {all, any, mixed}) set->clear();
  axial_keys(leaf, queries, universe, Wanted::kAll, all);
  add(any, universe, grid.cells());
  // A row's length of neighbours above or below the queries' rows crosses every column.
  add(mixed, universe, {0, grid.rows(grid.top, grid.top).begin});
  add(mixed, universe, {grid.rows(grid.bottom, grid.bottom).end, grid.cells().end});
  return true;
}

void natten_keys(const Node& leaf, Interval queries, Interval universe, Wanted wanted,
                 IntervalSet* out) {
  const Grid grid(leaf, queries);
  if (grid.queries.empty() || (wanted == Wanted::kAll && !grid.whole)) return;
  const std::int64_t n = leaf.third;
  const bool any = wanted == Wanted::kAny;
  // Rows that any or all of the queries see.
  const Interval of_top = neighbourhood(grid.top, n, grid.height);
  const Interval of_bottom = neighbourhood(grid.bottom, n, grid.height);
  Interval rows =
      any ? Interval{of_top.begin, of_bottom.end} : Interval{of_bottom.begin, of_top.end};
  if (universe.empty()) return;
  rows = intersection(
      rows, {floor_div(universe.begin, grid.width), floor_div(universe.end - 1, grid.width) + 1});
  // The queries of one of their rows see one range of columns, the same in each row of keys.
  const auto columns_of = [&](std::int64_t query_row) {
    const Interval cells = grid.rows(query_row, query_row);
    const Interval here = intersection(cells, grid.queries);
    const Interval first = neighbourhood(here.begin - cells.begin, n, grid.width);
    const Interval last = neighbourhood(here.end - 1 - cells.begin, n, grid.width);
    return any ? Interval{first.begin, last.end} : Interval{last.begin, first.end};
  };
  const auto sees = [&](std::int64_t query_row, std::int64_t row) {
    const Interval seen = neighbourhood(query_row, n, grid.height);
    return seen.begin <= row && row < seen.end;
  };
  const Interval first = columns_of(grid.top);
  const Interval last = columns_of(grid.bottom);
  // A row between the first and the last one of the queries is whole.
  const Interval between = grid.bottom - grid.top > 1 ? columns_of(grid.top + 1) : Interval{};
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const std::int64_t begin = grid.rows(row, row).begin;
    const auto keys = [&](const Interval& columns) {
      return Interval{begin + columns.begin, begin + columns.end};
    };
    if (!any) {
      // All the queries' rows see this row.
      Interval common = intersection(first, last);
      if (grid.bottom - grid.top > 1) common = intersection(common, between);
      if (!common.empty()) add(out, universe, keys(common));
      continue;
    }
    const std::int64_t inner = std::clamp(row, grid.top + 1, grid.bottom - 1);
    if (grid.bottom - grid.top > 1 && sees(inner, row)) {
      add(out, universe, keys(between));  // all columns
      continue;
    }
    const bool by_first = sees(grid.top, row);
    const bool by_last = sees(grid.bottom, row);
    // The last row's queries begin at column 0: in order of columns.
    if (by_last && grid.bottom > grid.top) add(out, universe, keys(last));
    if (by_first) add(out, universe, keys(first));
  }
}

}  // namespace annulus::pattern
