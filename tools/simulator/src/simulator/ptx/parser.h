#ifndef ANNULUS_SIMULATOR_PTX_PARSER_H_
#define ANNULUS_SIMULATOR_PTX_PARSER_H_

// Parses PTX text into a Module. It accepts the output of NVRTC, and PTX that a person writes for a
// test. Instructions are split into their parts. The decoder determines whether an opcode exists.

#include <string_view>

#include "simulator/ptx/module.h"

namespace annulus::ptx {

// Throws Error{kParse} with the line, or Error{kUnsupported} for an unknown directive.
Module parse(std::string_view text);

}  // namespace annulus::ptx

#endif  // ANNULUS_SIMULATOR_PTX_PARSER_H_
