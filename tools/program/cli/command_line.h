#ifndef ANNULUS_PROGRAM_CLI_COMMAND_LINE_H_
#define ANNULUS_PROGRAM_CLI_COMMAND_LINE_H_

// The verbs of the program with their options, as the parser of the command line knows them. Help,
// the man page and completions are made of it.

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "program/cli/verb.h"

namespace annulus::program {

// The parser, with all verbs of verbs.def.
struct CommandLine {
  struct Added {
    const Verb* verb;
    CLI::App* app;
    std::function<Exit()> call;  // carries the verb out
  };

  CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  CLI::App parser{"Block-sparse attention kernels, written, compiled and run at run time"};
  std::vector<Added> verbs;

 private:
  void add(const Verb& verb);
  // A verb that has verbs of its own.
  void add_group(const char* name, const char* help);
};

// The examples of a verb; a verb that has verbs of its own has no examples.
std::vector<std::string_view> examples_of(std::string_view verb);

// "annulus tuned list" for the verb `app` below `parser`; "annulus" for the parser itself.
std::string full_name(const CLI::App& app);
// "list, show or export": the verbs directly below.
std::string names_below(const CLI::App& app);

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_CLI_COMMAND_LINE_H_
