#ifndef ANNULUS_PATTERN_LEAVES_ARITHMETIC_H_
#define ANNULUS_PATTERN_LEAVES_ARITHMETIC_H_

// Arithmetic that several leaves use: lists of positions, rows of blocks, and keys of a universe.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "base/work.h"
#include "pattern/interval.h"
#include "pattern/leaves/leaf.h"
#include "pattern/positions.h"

namespace annulus::pattern::leaves {

constexpr std::int64_t kLow = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kHigh = std::numeric_limits<std::int64_t>::max();

inline void add(IntervalSet* out, Interval universe, Interval keys) {
  append(out, intersection(keys, universe));
}

// Sorts a list and removes duplicates.
inline void put_in_order(std::vector<std::int64_t>* list) {
  std::sort(list->begin(), list->end());
  list->erase(std::unique(list->begin(), list->end()), list->end());
}

inline bool has(const std::vector<std::int64_t>& list, std::int64_t value) {
  return std::binary_search(list.begin(), list.end(), value);
}

// The first element of a sorted list above a number.
inline std::int64_t next_listed(const std::vector<std::int64_t>& list, std::int64_t number) {
  const auto next = std::upper_bound(list.begin(), list.end(), number);
  return next == list.end() ? kNever : *next;
}

// Appends the listed positions within the universe.
void append_listed(const std::vector<std::int64_t>& list, Interval universe, IntervalSet* out);

// The next multiple of `of` above a number.
inline std::int64_t next_multiple(std::int64_t number, std::int64_t of) {
  return product(floor_div(number, of) + 1, of);
}

// A fixed end if it is above a position, else kNever.
inline std::int64_t if_above(std::int64_t end, std::int64_t position) {
  return end > position ? end : kNever;
}

// i - j| for two blocks i and j.
inline std::int64_t block_distance(std::int64_t i, std::int64_t j) {
  return i < j ? difference(j, i) : difference(i, j);
}

// The first and the last row of blocks, of length b, that a range of positions touches.
struct Rows {
  std::int64_t first;
  std::int64_t last;
  std::int64_t count() const { return last - first + 1; }
};
inline Rows rows_of(Interval queries, std::int64_t b) {
  return {floor_div(queries.begin, b), floor_div(queries.end - 1, b)};
}

// Appends the keys of blocks [first + t stride, last + t stride] for t in [low, high], as far as
// these keys are in the universe.
void append_comb(Rows blocks, std::int64_t stride, std::int64_t low, std::int64_t high,
                 std::int64_t b, Interval universe, IntervalSet* out);

// Joins the keys that each of the rows [first, last] of blocks sees; append_row(row, out) appends
// the keys of one row.
template <typename AppendRow>
void join_rows(Rows rows, Wanted wanted, const AppendRow& append_row, IntervalSet* out) {
  append_row(rows.first, out);
  IntervalSet next, joined;
  for (std::int64_t row = rows.first + 1; row <= rows.last; ++row) {
    next.clear();
    append_row(row, &next);
    base::charge(2 + std::ssize(next) + std::ssize(*out));
    (wanted == Wanted::kAny ? unite : intersect)(*out, next, &joined);
    std::swap(*out, joined);
  }
}

}  // namespace annulus::pattern::leaves

#endif  // ANNULUS_PATTERN_LEAVES_ARITHMETIC_H_
