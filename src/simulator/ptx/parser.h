#ifndef ANNULUS_SIMULATOR_PTX_PARSER_H_
#define ANNULUS_SIMULATOR_PTX_PARSER_H_

// PTX text to a Module. Accepts what NVRTC writes and what a person writes by hand for a test; an
// instruction is taken apart but not judged: whether an opcode exists is the executor's question.

#include <string_view>

#include "simulator/ptx/module.h"

namespace annulus::ptx {

// Throws Error{kParse} naming the line; Error{kUnsupported} for a directive it does not know.
Module parse(std::string_view text);

}  // namespace annulus::ptx

#endif  // ANNULUS_SIMULATOR_PTX_PARSER_H_
