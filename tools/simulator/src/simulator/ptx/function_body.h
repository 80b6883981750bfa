#ifndef ANNULUS_SIMULATOR_PTX_FUNCTION_BODY_H_
#define ANNULUS_SIMULATOR_PTX_FUNCTION_BODY_H_

// Parses the body of a function: registers, variables, labels, instructions.

#include "simulator/ptx/module.h"
#include "simulator/ptx/token_stream.h"

namespace annulus::ptx {

// Parses from the opening brace to the closing one. Variables in global and constant memory are
// added to the module, and everything else to the function.
void parse_function_body(TokenStream& tokens, Module& module, Function& function);

}  // namespace annulus::ptx

#endif  // ANNULUS_SIMULATOR_PTX_FUNCTION_BODY_H_
