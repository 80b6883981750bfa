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

// The forms of all query positions within kMaxPosition. Throws Error{kUnsupported}, naming the
// leaf, for patterns whose rows are not bands or runs, or differ from head to head or from batch to
// batch, and for those that need more than kernels::kMostForms forms or kMostRuns runs.
std::vector<kernels::RowForm> find_forms(const Pattern& pattern, std::int64_t heads);

// The most runs of any form, and of the queries on both sides of where a form begins.
int most_runs(const std::vector<kernels::RowForm>& forms);

}  // namespace annulus::batch

#endif  // ANNULUS_BATCH_ROW_FORMS_H_
