#ifndef ANNULUS_ATTENTION_PROBLEM_OPERANDS_H_
#define ANNULUS_ATTENTION_PROBLEM_OPERANDS_H_

// Parts of validate(), the checks of a problem and its operands.

#include "annulus/attention.h"

namespace annulus::attention {

// The checks of Q and K, for kernels that read nothing else.
void check_queries_and_keys(const Problem& problem, const Operands& operands);

// Throws if a tensor that is written begins where another one does, except O over Q and the state
// over itself. Requires: there are query rows.
void check_overlaps(const Problem& problem, const Operands& operands);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_PROBLEM_OPERANDS_H_
