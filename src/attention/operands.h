#ifndef ANNULUS_ATTENTION_OPERANDS_H_
#define ANNULUS_ATTENTION_OPERANDS_H_

// What kernels beside the attention itself require of its operands.

#include "annulus/attention.h"

namespace annulus::attention {

// The part of validate() that is about Q and K, for those who read nothing else.
void check_queries_and_keys(const Problem& problem, const Operands& operands);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_OPERANDS_H_
