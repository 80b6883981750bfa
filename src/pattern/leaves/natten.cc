#include "pattern/leaves/natten.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "pattern/check_number.h"
#include "pattern/leaves/arguments.h"
#include "pattern/leaves/arithmetic.h"
#include "pattern/leaves/grid.h"
#include "pattern/leaves/mask_writer.h"
#include "pattern/node.h"

namespace annulus::pattern::leaves {
namespace {

constexpr Word kNattenWords[] = {{"natten", "natten(height, width, n)",
                                  "the n x n cells around the query's in a grid",
                                  [](Arguments* read) {
                                    const auto [height, width, n] = read->numbers<3>("natten");
                                    return read->built([&] { return natten(height, width, n); });
                                  }}};

// The cells along one axis that a query at coordinate `at` sees.
Interval neighbourhood(std::int64_t at, std::int64_t n, std::int64_t length) {
  const std::int64_t centre = std::clamp(at, n / 2, length - 1 - n / 2);
  return {centre - n / 2, centre + n / 2 + 1};
}

}  // namespace

void Natten::check() {
  check_number("natten", "height", height, 1);
  check_number("natten", "width", width, 1);
  check_number("natten", "n", n, 1);
  if (n % 2 == 0 || n > height || n > width) {
    base::fail(ErrorCode::kInvalidArgument,
               "natten: n is {} on a grid of {} x {}; it must be odd and at most either side", n,
               height, width);
  }
}

void Natten::print(std::string* text) const {
  fmt::format_to(std::back_inserter(*text), "natten({}, {}, {})", height, width, n);
}

bool Natten::visible(const Pair& pair) const {
  const Cell query = cell_of(height, width, pair.q);
  const Cell key = cell_of(height, width, pair.k);
  const std::int64_t reach = n / 2;
  const auto near = [&](std::int64_t at, std::int64_t other, std::int64_t length) {
    return std::abs(std::clamp(at, reach, length - 1 - reach) - other) <= reach;
  };
  return query.inside && key.inside && near(query.row, key.row, height) &&
         near(query.column, key.column, width);
}

void Natten::keys(const Question& question, Wanted wanted, IntervalSet* out) const {
  const Interval& universe = question.universe;
  const Grid grid(height, width, question.queries);
  if (grid.queries.empty() || (wanted == Wanted::kAll && !grid.whole)) return;
  const bool any = wanted == Wanted::kAny;
  // The rows of keys that any query sees, or that all of them see.
  const Interval of_top = neighbourhood(grid.top, n, grid.height);
  const Interval of_bottom = neighbourhood(grid.bottom, n, grid.height);
  Interval rows =
      any ? Interval{of_top.begin, of_bottom.end} : Interval{of_bottom.begin, of_top.end};
  if (universe.empty()) return;
  rows = intersection(
      rows, {floor_div(universe.begin, grid.width), floor_div(universe.end - 1, grid.width) + 1});
  // The queries of one row see one range of columns, which is the same in each row of keys.
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
  // The rows of queries between the first and the last one are whole, so they have the same range.
  const Interval between = grid.bottom - grid.top > 1 ? columns_of(grid.top + 1) : Interval{};
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const std::int64_t begin = grid.rows(row, row).begin;
    const auto keys = [&](const Interval& columns) {
      return Interval{begin + columns.begin, begin + columns.end};
    };
    if (!any) {
      // All rows of queries see this row of keys.
      Interval common = intersection(first, last);
      if (grid.bottom - grid.top > 1) common = intersection(common, between);
      if (!common.empty()) add(out, universe, keys(common));
      continue;
    }
    if (grid.bottom - grid.top > 1) {
      // A neighbourhood moves with its row and never back. So of the rows between the first and the
      // last, the nearest one sees this row if any of them does, and it sees all columns of it.
      if (sees(std::clamp(row, grid.top + 1, grid.bottom - 1), row)) {
        add(out, universe, keys(between));
        continue;
      }
    }
    const bool by_first = sees(grid.top, row);
    const bool by_last = sees(grid.bottom, row);
    // The last row's queries start at column 0, so the keys that they see begin no later than the
    // keys that the first row's queries see; add() needs that order.
    if (by_last && grid.bottom > grid.top) add(out, universe, keys(last));
    if (by_first) add(out, universe, keys(first));
  }
}

bool Natten::coarse_keys(const Question&, std::int64_t, CoarseKeys*) const { return false; }

std::optional<Stripes> Natten::stripes(std::int64_t, std::int64_t) const { return {}; }

std::int64_t Natten::alike_rows() const { return 1; }

std::int64_t Natten::next_form(std::int64_t q) const { return q + 1; }

std::int64_t Natten::next_end(std::int64_t, std::int64_t position) const { return position + 1; }

MovingEnds Natten::moving_ends(std::int64_t) const { return {}; }

Piece Natten::code(MaskWriter* write) const {
  return write->call(functions::natten,
                     {write->slot("height of natten", height),
                      write->slot("width of natten", width), write->slot("n of natten", n / 2)});
}

Structure Natten::structure() const {
  return {.head_period = 1, .context_block = 0, .agreeing_rows = 0, .is_scattered = true};
}

std::span<const Word> Natten::words() { return kNattenWords; }

}  // namespace annulus::pattern::leaves

namespace annulus::inline v0 {

Pattern natten(std::int64_t height, std::int64_t width, std::int64_t n) {
  return pattern::make_leaf(pattern::leaves::Natten{.height = height, .width = width, .n = n});
}

}  // namespace annulus::inline v0
