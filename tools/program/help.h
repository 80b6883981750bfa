#ifndef ANNULUS_PROGRAM_HELP_H_
#define ANNULUS_PROGRAM_HELP_H_

// annulus help: what --help says of a verb.

#include <string>
#include <vector>

#include "program/options.h"

namespace annulus::program {

struct HelpArguments {
  std::vector<std::string> verb;  // {"pattern", "draw"}; empty: the program
};

void add_options(CLI::App& app, HelpArguments* arguments);

// Throws Error{kInvalidArgument} for a verb that there is not.
Exit help(const CLI::App& parser, const HelpArguments& arguments);

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_HELP_H_
