#ifndef ANNULUS_SIMULATOR_PTX_DECLARATION_H_
#define ANNULUS_SIMULATOR_PTX_DECLARATION_H_

// Parses the variables of a module and of a function, and parameters (PTX ISA 9.0, sections 5.4 and
// 7.1).

#include <optional>
#include <string_view>
#include <vector>

#include "simulator/ptx/module.h"
#include "simulator/ptx/token_stream.h"

namespace annulus::ptx {

// The number of bits of a fundamental type (PTX ISA 9.0, section 5.2); 0 for anything else.
int type_bits(std::string_view type);

// The space of a directive like ".global". Returns no value for other directives.
std::optional<Space> space_of(std::string_view directive);

// Parses the text after `.global` or the like, up to and including the semicolon: one variable or
// several.
std::vector<Variable> parse_variables(TokenStream& tokens, Space space, bool external);

// Parses ( .param .b32 a, ... ), or nothing.
std::vector<Variable> parse_parameters(TokenStream& tokens);

}  // namespace annulus::ptx

#endif  // ANNULUS_SIMULATOR_PTX_DECLARATION_H_
