#ifndef ANNULUS_PROGRAM_INPUT_HOST_MEMORY_H_
#define ANNULUS_PROGRAM_INPUT_HOST_MEMORY_H_

#include "annulus/problem.h"

namespace annulus::program {

// Throws Error{kUnsupported} if this machine has too little memory for the operands, their copy on
// a simulated device and the oracle's working memory. Without this check the allocation would end
// the process.
void check_host_memory(const Problem& problem);
// Makes this check for numbers of elements of the inputs and of the output. `advice` names what the
// user should reduce.
void check_host_memory(double inputs, double output, const char* advice);

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_INPUT_HOST_MEMORY_H_
