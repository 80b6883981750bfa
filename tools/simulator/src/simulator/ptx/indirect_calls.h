#ifndef ANNULUS_SIMULATOR_PTX_INDIRECT_CALLS_H_
#define ANNULUS_SIMULATOR_PTX_INDIRECT_CALLS_H_

#include "simulator/ptx/module.h"

namespace annulus::ptx {

// Turns each call through a register (PTX ISA 9.0, section 9.7.12.5) into one guarded call for each
// function that it may mean, after a comparison of the register with the function's address: those
// whose address something of the module takes, and whose parameters and results have the sizes of
// the call's. Left out are functions that may lead back to the caller, since recursion is not
// modelled. Behind them stands the call itself, guarded so that it is reached only where the
// register holds none of these addresses.
void expand_indirect_calls(Module& module);

}  // namespace annulus::ptx

#endif  // ANNULUS_SIMULATOR_PTX_INDIRECT_CALLS_H_
