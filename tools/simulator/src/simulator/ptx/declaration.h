#ifndef ANNULUS_SIMULATOR_PTX_DECLARATION_H_
#define ANNULUS_SIMULATOR_PTX_DECLARATION_H_

// Parses variables: those of a module and of a function, and parameters (PTX ISA 9.0, sections 5.4
// and 7.1).

#include <optional>
#include <string_view>
#include <vector>

#include "simulator/ptx/module.h"
#include "simulator/ptx/token_stream.h"

namespace annulus::ptx {

// The bits of a fundamental type (PTX ISA 9.0, section 5.2); 0 for anything else.
int type_bits(std::string_view type);

// The space that a directive like ".global" names; nothing for another directive.
std::optional<Space> space_of(std::string_view directive);

// Parses what follows `.global` or the like, up to and including the semicolon: one variable or
// several.
std::vector<Variable> parse_variables(TokenStream& tokens, Space space, bool external);

// Parses ( .param .b32 a, ... ), or nothing at all.
std::vector<Variable> parse_parameters(TokenStream& tokens);

}  // namespace annulus::ptx

#endif  // ANNULUS_SIMULATOR_PTX_DECLARATION_H_
