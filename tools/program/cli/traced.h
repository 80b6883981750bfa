#ifndef ANNULUS_PROGRAM_CLI_TRACED_H_
#define ANNULUS_PROGRAM_CLI_TRACED_H_

#include <functional>

#include "program/cli/exit.h"
#include "program/input/options.h"

namespace annulus::program {

// Carries out a verb, and writes what the process did to the file of --trace, where that is given,
// also when the verb ended with an error. Throws what the verb throws, Error{kInvalidArgument,
// kFile} for the file.
Exit traced(const DeviceArguments& arguments, const std::function<Exit()>& verb);

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_CLI_TRACED_H_
