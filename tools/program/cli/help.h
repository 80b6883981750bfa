#ifndef ANNULUS_PROGRAM_CLI_HELP_H_
#define ANNULUS_PROGRAM_CLI_HELP_H_

// annulus help: what --help says of a verb, and what is installed of all of them.

#include <string>
#include <vector>

#include "program/input/options.h"

namespace annulus::program {

struct HelpArguments {
  std::vector<std::string> verb;  // {"pattern", "draw"}; empty: the program
  std::string as = "text";
};

void add_options(CLI::App& app, HelpArguments* arguments);

// Throws Error{kInvalidArgument} for a verb that there is not, or with another form than text.
Exit help(const CLI::App& parser, const HelpArguments& arguments);

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_CLI_HELP_H_
