#ifndef ANNULUS_PATTERN_ROWS_ALIKE_H_
#define ANNULUS_PATTERN_ROWS_ALIKE_H_

// How far the rows of a pattern go on in the same way. The keys of a row lie between ends that stay
// where they are (of a sink, a document, the universe) and ends that move along with the row (of a
// window, the diagonal). As long as none passes another, the row's keys are as many as before or
// change by the same number from row to row.

#include <cstdint>
#include <vector>

#include "pattern/interval.h"
#include "pattern/node.h"

namespace annulus::pattern {

// True where all of the queries see the same keys through the leaf because of where they lie; what
// is false, as it is for operators, says nothing.
bool sees_alike(const Node& node, Interval queries);

// True where each `rows` queries, counted from the first, see the same keys through the leaf
// because of where they lie, or all do; what is false says nothing. Requires: rows >= 1.
bool sees_alike_in_groups(const Node& node, Interval queries, std::int64_t rows);

class RowsAlike {
 public:
  explicit RowsAlike(const Node& root);

  // A number n >= 1 such that the counts of visible keys of rows q, q + 1, ..., q + n - 1 within
  // the universe are an arithmetic progression. Often the largest; 2^62 where it never ends. Costs
  // by the leaves of the pattern, and the logarithm of its lists.
  std::int64_t from(std::int64_t q, Interval universe) const;

 private:
  std::int64_t next_end(std::int64_t q, std::int64_t position) const;

  std::vector<const Node*> leaves_;
};

}  // namespace annulus::pattern

#endif  // ANNULUS_PATTERN_ROWS_ALIKE_H_
