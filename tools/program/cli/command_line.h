#ifndef ANNULUS_PROGRAM_CLI_COMMAND_LINE_H_
#define ANNULUS_PROGRAM_CLI_COMMAND_LINE_H_

// The parser of the command line, with the verbs of the program and their options. Help, the man
// page and completions are made from it.

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "program/cli/verb.h"

namespace annulus::program {

// The parser with all verbs of verbs.def.
struct CommandLine {
  struct Added {
    const Verb* verb;
    CLI::App* app;
    std::function<Exit()> call;  // runs the verb
  };

  CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  CLI::App parser{"Block-sparse attention kernels, written, compiled and run at run time"};
  std::vector<Added> verbs;

 private:
  void add(const Verb& verb);
  // Adds a verb that has subcommands.
  void add_group(const char* name, const char* help);
};

// The examples of a verb. A verb that has subcommands has no examples.
std::vector<std::string_view> examples_of(std::string_view verb);

// "annulus tuned list" for the verb `app` below `parser`, or "annulus" for the parser itself.
std::string full_name(const CLI::App& app);
// "list, show or export": the subcommands directly below `app`.
std::string names_below(const CLI::App& app);

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_CLI_COMMAND_LINE_H_
