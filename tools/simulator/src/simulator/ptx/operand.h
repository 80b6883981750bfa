#ifndef ANNULUS_SIMULATOR_PTX_OPERAND_H_
#define ANNULUS_SIMULATOR_PTX_OPERAND_H_

// Parses one operand of an instruction (PTX ISA 9.0, section 6).

#include "simulator/ptx/module.h"
#include "simulator/ptx/scopes.h"
#include "simulator/ptx/token_stream.h"

namespace annulus::ptx {

Operand parse_operand(TokenStream& tokens, const Scopes& scopes);

}  // namespace annulus::ptx

#endif  // ANNULUS_SIMULATOR_PTX_OPERAND_H_
