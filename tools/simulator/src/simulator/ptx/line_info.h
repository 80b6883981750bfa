#ifndef ANNULUS_SIMULATOR_PTX_LINE_INFO_H_
#define ANNULUS_SIMULATOR_PTX_LINE_INFO_H_

// The directives .file and .loc (PTX ISA 9.0, section 11.5), which give the source line of each PTX
// line.

#include "simulator/ptx/module.h"
#include "simulator/ptx/token_stream.h"

namespace annulus::ptx {

// Parses `.file`, and adds the name to the module's files.
void parse_file(TokenStream& tokens, Module& module);

// Parses `.loc`, adds it to the module's locations and returns its index.
int parse_location(TokenStream& tokens, Module& module);

}  // namespace annulus::ptx

#endif  // ANNULUS_SIMULATOR_PTX_LINE_INFO_H_
