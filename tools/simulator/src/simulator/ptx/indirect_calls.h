#ifndef ANNULUS_SIMULATOR_PTX_INDIRECT_CALLS_H_
#define ANNULUS_SIMULATOR_PTX_INDIRECT_CALLS_H_

#include "simulator/ptx/module.h"

namespace annulus::ptx {

// Expands each call through a register (PTX ISA 9.0, section 9.7.12.5) into a guarded call for each
// possible function, after a comparison of the register with the function's address. A function is
// possible if the module takes its address, and if its parameters and results have the sizes of the
// call's. Functions that may call the caller again are left out, because recursion is not
// supported. After these calls comes the call itself, guarded so that it is reached only if the
// register holds none of these addresses.
void expand_indirect_calls(Module& module);

}  // namespace annulus::ptx

#endif  // ANNULUS_SIMULATOR_PTX_INDIRECT_CALLS_H_
