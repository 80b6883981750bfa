#ifndef ANNULUS_ATTENTION_PROBLEM_OPERANDS_H_
#define ANNULUS_ATTENTION_PROBLEM_OPERANDS_H_

// Parts of validate().

#include "annulus/attention.h"

namespace annulus::attention {

// What is about Q and K, for kernels that read nothing else.
void check_queries_and_keys(const Problem& problem, const Operands& operands);

// That nothing which is written begins where another tensor does, but for O over Q and the state
// over itself. Requires: there are query rows.
void check_overlaps(const Problem& problem, const Operands& operands);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_PROBLEM_OPERANDS_H_
