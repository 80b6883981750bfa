#ifndef ANNULUS_SIMULATOR_PTX_LINE_INFO_H_
#define ANNULUS_SIMULATOR_PTX_LINE_INFO_H_

// The directives .file and .loc (PTX ISA 9.0, section 11.5), which say from which source line a PTX
// line was made.

#include "simulator/ptx/module.h"
#include "simulator/ptx/token_stream.h"

namespace annulus::ptx {

// At `.file`: adds the name to the module's files.
void parse_file(TokenStream& tokens, Module& module);

// At `.loc`: adds to the module's locations and returns the index of the one it names.
int parse_location(TokenStream& tokens, Module& module);

}  // namespace annulus::ptx

#endif  // ANNULUS_SIMULATOR_PTX_LINE_INFO_H_
