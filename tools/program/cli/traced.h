#ifndef ANNULUS_PROGRAM_CLI_TRACED_H_
#define ANNULUS_PROGRAM_CLI_TRACED_H_

#include <functional>

#include "program/cli/exit.h"
#include "program/input/options.h"

namespace annulus::program {

// Runs a verb. If --trace is given, writes a trace of the process to its file, even if the verb
// ended with an error. Throws what the verb throws, and Error{kInvalidArgument, kFile} for the
// file.
Exit traced(const DeviceArguments& arguments, const std::function<Exit()>& verb);

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_CLI_TRACED_H_
