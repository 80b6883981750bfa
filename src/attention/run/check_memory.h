#ifndef ANNULUS_ATTENTION_RUN_CHECK_MEMORY_H_
#define ANNULUS_ATTENTION_RUN_CHECK_MEMORY_H_

// Checks with the driver that the memory of a call is readable (DeviceOptions::check_operands).

#include "annulus/problem.h"
#include "device/context.h"

namespace annulus::attention {

// Throws Error{kInvalidArgument} for the first tensor, or the workspace, that the device cannot
// read. Null addresses are not checked here; validate() decides which may be null.
void check_memory(const device::Context& context, const Operands& operands, const void* workspace);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_RUN_CHECK_MEMORY_H_
