#ifndef ANNULUS_PROGRAM_INPUT_HOST_MEMORY_H_
#define ANNULUS_PROGRAM_INPUT_HOST_MEMORY_H_

#include "annulus/problem.h"

namespace annulus::program {

// Throws Error{kUnsupported} where the operands, their copy on a simulated device and the oracle's
// working memory are more than this machine has: asking for it would end the process instead.
void check_host_memory(const Problem& problem);
// The same of elements of inputs and of the output. `advice` says what to use less of.
void check_host_memory(double inputs, double output, const char* advice);

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_INPUT_HOST_MEMORY_H_
