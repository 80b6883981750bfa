#ifndef ANNULUS_SIMULATOR_PTX_PARSER_H_
#define ANNULUS_SIMULATOR_PTX_PARSER_H_

// Parses PTX text into a Module. It accepts what NVRTC writes and what a person writes by hand for
// a test. Instructions are split into their parts; whether an opcode exists is decided by the
// decoder.

#include <string_view>

#include "simulator/ptx/module.h"

namespace annulus::ptx {

// Throws Error{kParse} that names the line, and Error{kUnsupported} for a directive it does not
// know.
Module parse(std::string_view text);

}  // namespace annulus::ptx

#endif  // ANNULUS_SIMULATOR_PTX_PARSER_H_
