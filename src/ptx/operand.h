#ifndef ANNULUS_PTX_OPERAND_H_
#define ANNULUS_PTX_OPERAND_H_

// One operand of an instruction (PTX ISA 9.0, section 6).

#include "ptx/module.h"
#include "ptx/scopes.h"
#include "ptx/token_stream.h"

namespace annulus::ptx {

Operand parse_operand(TokenStream& tokens, const Scopes& scopes);

}  // namespace annulus::ptx

#endif  // ANNULUS_PTX_OPERAND_H_
