#include "pattern/leaves/axial.h"

#include <algorithm>
#include <iterator>

#include "base/work.h"
#include "pattern/check_number.h"
#include "pattern/leaves/arguments.h"
#include "pattern/leaves/arithmetic.h"
#include "pattern/leaves/grid.h"
#include "pattern/leaves/mask_writer.h"
#include "pattern/node.h"

namespace annulus::pattern::leaves {
namespace {

constexpr Word kAxialWords[] = {{"axial", "axial(height, width)",
                                 "the same row or column of a grid of height x width cells",
                                 [](Arguments* read) {
                                   const auto [height, width] = read->numbers<2>("axial");
                                   return read->built([&] { return axial(height, width); });
                                 }}};

// Appends columns [first, last] of rows [top, bottom], as far as these cells are in the universe.
void append_columns(const Grid& grid, std::int64_t top, std::int64_t bottom, std::int64_t first,
                    std::int64_t last, Interval universe, IntervalSet* out) {
  if (universe.empty()) return;
  top = std::max(top, floor_div(universe.begin, grid.width));
  bottom = std::min(bottom, floor_div(universe.end - 1, grid.width));
  base::charge(std::max<std::int64_t>(0, bottom - top) / 2);
  for (std::int64_t row = top; row <= bottom; ++row) {
    const std::int64_t begin = grid.rows(row, row).begin;
    add(out, universe, {begin + first, begin + last + 1});
  }
}

// Appends the keys in the columns of the queries. There are fewer queries than a row has cells.
void append_crossing(const Grid& grid, std::int64_t top, std::int64_t bottom, Interval universe,
                     IntervalSet* out) {
  const std::int64_t first = grid.column(grid.queries.begin);
  const std::int64_t last = grid.column(grid.queries.end - 1);
  if (first <= last) return append_columns(grid, top, bottom, first, last, universe, out);
  if (universe.empty()) return;
  top = std::max(top, floor_div(universe.begin, grid.width));
  bottom = std::min(bottom, floor_div(universe.end - 1, grid.width));
  base::charge(std::max<std::int64_t>(0, bottom - top));
  for (std::int64_t row = top; row <= bottom; ++row) {
    const Interval cells = grid.rows(row, row);
    add(out, universe, {cells.begin, cells.begin + last + 1});
    add(out, universe, {cells.begin + first, cells.end});
  }
}

// Appends the keys of one row that all queries see. A query of another row sees only one column of
// it, and two neighbouring queries see different columns. So at most one query may be before the
// row, and at most one after it.
void append_common(const Grid& grid, std::int64_t row, Interval universe, IntervalSet* out) {
  const Interval cells = grid.rows(row, row);
  const std::int64_t before = std::max<std::int64_t>(cells.begin - grid.queries.begin, 0);
  const std::int64_t behind = std::max<std::int64_t>(grid.queries.end - cells.end, 0);
  if (before == 0 && behind == 0) return add(out, universe, cells);
  if (before == 1 && behind == 0) return add(out, universe, {cells.end - 1, cells.end});
  if (before == 0 && behind == 1) return add(out, universe, {cells.begin, cells.begin + 1});
}

}  // namespace

void Axial::check() {
  check_number("axial", "height", height, 1);
  check_number("axial", "width", width, 1);
}

void Axial::print(std::string* text) const {
  fmt::format_to(std::back_inserter(*text), "axial({}, {})", height, width);
}

bool Axial::visible(const Pair& pair) const {
  const Cell query = cell_of(height, width, pair.q);
  const Cell key = cell_of(height, width, pair.k);
  return query.inside && key.inside && (query.row == key.row || query.column == key.column);
}

void Axial::keys(const Question& question, Wanted wanted, IntervalSet* out) const {
  const Interval& universe = question.universe;
  const Grid grid(height, width, question.queries);
  if (grid.queries.empty()) return;
  if (wanted == Wanted::kAll && !grid.whole) return;
  const std::int64_t count = grid.queries.size();
  // With one column, the queries see the whole grid. For kAny they also do if there is a query in
  // every column.
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

bool Axial::coarse_keys(const Question& question, std::int64_t grain, CoarseKeys* out) const {
  const Interval& universe = question.universe;
  const Grid grid(height, width, question.queries);
  if (width > grain || grid.queries.empty() || grid.queries.size() >= width) return false;
  // The keys of one query are known exactly, including the keys of its column in other rows.
  if (question.queries.size() == 1) return false;
  keys(question, Wanted::kAll, out->all);
  add(out->any, universe, grid.cells());
  // Any neighbouring keys above or below the queries' rows cross every column if they are as long
  // as a row.
  add(out->mixed, universe, {0, grid.rows(grid.top, grid.top).begin});
  add(out->mixed, universe, {grid.rows(grid.bottom, grid.bottom).end, grid.cells().end});
  return true;
}

std::optional<Stripes> Axial::stripes(std::int64_t, std::int64_t) const { return {}; }

std::int64_t Axial::alike_rows() const { return 1; }

std::int64_t Axial::next_form(std::int64_t q) const { return q + 1; }

std::int64_t Axial::next_end(std::int64_t, std::int64_t position) const { return position + 1; }

MovingEnds Axial::moving_ends(std::int64_t) const { return {}; }

Piece Axial::code(MaskWriter* write) const {
  return write->call(functions::axial, {write->slot("height of axial", height),
                                        write->slot("width of axial", width)});
}

Structure Axial::structure() const {
  return {.head_period = 1, .context_block = 0, .agreeing_rows = 0, .is_scattered = true};
}

std::span<const Word> Axial::words() { return kAxialWords; }

}  // namespace annulus::pattern::leaves

namespace annulus::inline v0 {

Pattern axial(std::int64_t height, std::int64_t width) {
  return pattern::make_leaf(pattern::leaves::Axial{.height = height, .width = width});
}

}  // namespace annulus::inline v0
