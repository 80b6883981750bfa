#ifndef ANNULUS_BATCH_ROW_FORMS_H_
#define ANNULUS_BATCH_ROW_FORMS_H_

// A pattern as a table of few numbers from which a kernel finds the keys of any query, whatever the
// lengths of its request: query positions in ascending ranges, and for each range runs of keys
// whose ends stand still or move along with the query.

#include <cstdint>
#include <vector>

#include "annulus/pattern.h"
#include "params/batch_params.h"

namespace annulus::batch {

// What some heads see together, for all query positions within kMaxPosition.
struct HeadForms {
  std::vector<kernels::RowForm> some;  // the keys that one of them sees, or several
  // Keys that all of them see. Never more, but where those take too many forms or runs it says
  // none.
  std::vector<kernels::RowForm> all;

  friend bool operator==(const HeadForms& a, const HeadForms& b);
};

// Throws Error{kUnsupported}, naming the leaf, for patterns whose rows are not bands or runs, or
// differ from batch to batch.
void check_has_forms(const Pattern& pattern);

// Throws Error{kUnsupported} where `some` needs more than kernels::kMostForms forms or kMostRuns
// runs. Requires: check_has_forms(pattern) passes; at least one head.
HeadForms find_forms(const Pattern& pattern, const std::vector<std::int64_t>& heads);

// The most runs that up to `queries` queries behind one another see together.
int most_runs(const HeadForms& forms, std::int64_t queries);

}  // namespace annulus::batch

#endif  // ANNULUS_BATCH_ROW_FORMS_H_
