#ifndef ANNULUS_BATCH_ROW_FORMS_H_
#define ANNULUS_BATCH_ROW_FORMS_H_

// A pattern as a short table, from which a kernel computes the keys of any query, whatever the
// lengths of its request are. The table has ascending ranges of query positions. Each range has
// runs of keys, whose ends are fixed or move with the query.

#include <cstdint>
#include <vector>

#include "annulus/pattern.h"
#include "params/batch_params.h"

namespace annulus::batch {

// The keys that some heads see together, for all query positions within kMaxPosition.
struct HeadForms {
  std::vector<kernels::RowForm> some;  // the keys that at least one of the heads sees
  // Keys that all of the heads see. They are never too many, but the table is empty if they need
  // too many forms or runs.
  std::vector<kernels::RowForm> all;

  friend bool operator==(const HeadForms& a, const HeadForms& b);
};

// Throws Error{kUnsupported}, naming the leaf, for patterns whose rows are not bands or runs, and
// for patterns that differ from batch to batch.
void check_has_forms(const Pattern& pattern);

// Throws Error{kUnsupported} if `some` needs more than kernels::kMaxForms forms or kMaxRuns runs.
// Requires: check_has_forms(pattern) passes; at least one head.
HeadForms find_forms(const Pattern& pattern, const std::vector<std::int64_t>& heads);

// The most runs that up to `queries` successive queries see together.
int max_runs(const HeadForms& forms, std::int64_t queries);

}  // namespace annulus::batch

#endif  // ANNULUS_BATCH_ROW_FORMS_H_
