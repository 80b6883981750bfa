#ifndef ANNULUS_PATTERN_ROWS_ALIKE_H_
#define ANNULUS_PATTERN_ROWS_ALIKE_H_

// Finds how far the rows of a pattern go on in the same way. The keys of a row lie between fixed
// ends (of a sink, a document, the universe) and ends that move along with the row (of a window,
// the diagonal). As long as none passes another, the number of a row's keys stays the same or
// changes by the same amount from row to row.

#include <cstdint>
#include <vector>

#include "pattern/interval.h"
#include "pattern/node_pointer.h"

namespace annulus::pattern {

// True where all of the queries see the same keys through the leaf because of their positions.
// False, as for operators, means not known.
bool sees_alike(const Node& node, Interval queries);

// True where each group of `rows` queries, counted from the first, sees the same keys through the
// leaf because of the queries' positions, or all queries do. False means not known. Requires: rows
// >= 1.
bool sees_alike_in_groups(const Node& node, Interval queries, std::int64_t rows);

class RowsAlike {
 public:
  explicit RowsAlike(const Node& root);

  // True where all of the queries see the same keys because of their positions. False means not
  // known.
  bool see_the_same(Interval queries) const;

  // A number n >= 1 such that the counts of visible keys of rows q, q + 1, ..., q + n - 1 within
  // the universe are an arithmetic progression. It is often the largest such number, and 2^62 where
  // the progression never ends. The time grows with the leaves of the pattern and the logarithm of
  // their lists.
  std::int64_t from(std::int64_t q, Interval universe) const;

 private:
  std::int64_t next_end(std::int64_t q, std::int64_t position) const;

  std::vector<const Node*> leaves_;
};

}  // namespace annulus::pattern

#endif  // ANNULUS_PATTERN_ROWS_ALIKE_H_
