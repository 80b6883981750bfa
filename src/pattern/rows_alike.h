#ifndef ANNULUS_PATTERN_ROWS_ALIKE_H_
#define ANNULUS_PATTERN_ROWS_ALIKE_H_

// Finds how many rows of a pattern continue in the same way. The keys of a row lie between fixed
// ends (of a sink, a document, the universe) and ends that move with the row (of a window, or the
// diagonal). As long as no end passes another, the number of a row's keys stays the same or changes
// by the same amount from row to row.

#include <cstdint>
#include <vector>

#include "pattern/interval.h"
#include "pattern/node_pointer.h"

namespace annulus::pattern {

// Whether all of the queries see the same keys through the leaf because of their positions. False
// if this is not known, and for operators.
bool sees_alike(const Node& node, Interval queries);

// Whether each group of `rows` queries, counted from the first, sees the same keys through the leaf
// because of the queries' positions, or all queries do. False if this is not known. Requires: rows
// >= 1.
bool sees_alike_in_groups(const Node& node, Interval queries, std::int64_t rows);

class RowsAlike {
 public:
  explicit RowsAlike(const Node& root);

  // Whether all of the queries see the same keys because of their positions. False if this is not
  // known.
  bool see_the_same(Interval queries) const;

  // A number n >= 1 such that the counts of visible keys of rows q, q + 1, ..., q + n - 1 within
  // the universe are an arithmetic progression. It is often the largest such number, and 2^62 if
  // the progression never ends. The time grows with the leaves of the pattern and the logarithm of
  // their lists.
  std::int64_t from(std::int64_t q, Interval universe) const;

 private:
  std::int64_t next_end(std::int64_t q, std::int64_t position) const;

  std::vector<const Node*> leaves_;
};

}  // namespace annulus::pattern

#endif  // ANNULUS_PATTERN_ROWS_ALIKE_H_
