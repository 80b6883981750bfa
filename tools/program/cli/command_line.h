#ifndef ANNULUS_PROGRAM_CLI_COMMAND_LINE_H_
#define ANNULUS_PROGRAM_CLI_COMMAND_LINE_H_

// The verbs of the program with their options, as the parser of the command line knows them. Help,
// the man page and completions are made of it.

#include <CLI/CLI.hpp>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "program/cli/help.h"
#include "program/input/options.h"
#include "program/pattern/pattern.h"

namespace annulus::program {

// All verbs, with the arguments that the parser fills in. Stays where it was made: the parser
// points into it.
struct CommandLine {
  struct Verb {
    std::string name;  // "tuned list"
    CLI::App* app;
    std::function<Exit()> call;
  };

  CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  CLI::App parser{"Block-sparse attention kernels, written, compiled and run at run time"};
  std::vector<Verb> verbs;

 private:
  // `call` is what the verb does where the command line names it.
  CLI::App& add(CLI::App& parent, const char* name, const char* help, std::function<Exit()> call);
  // A verb that has verbs of its own.
  CLI::App& add_group(const char* name, const char* help);

  RunArguments run_;
  ExplainArguments explain_;
  TuneArguments tune_;
  TuneReportArguments tune_report_;
  TunedArguments tuned_;
  PackArguments packs_;
  WarmArguments warm_;
  CacheArguments cache_;
  PatternVerbs pattern_;
  DoctorArguments doctor_;
  HelpArguments help_;
};

// The exit codes and what each says.
struct ExitMeaning {
  Exit exit;
  std::string_view meaning;
};
std::span<const ExitMeaning> exit_meanings();

// Command lines that show what a verb is for; of a verb that has verbs of its own, none.
std::vector<std::string_view> examples_of(std::string_view verb);

// "annulus tuned list" for the verb `app` below `parser`; "annulus" for the parser itself.
std::string full_name(const CLI::App& app);
// "list, show or export": the verbs directly below.
std::string names_below(const CLI::App& app);

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_CLI_COMMAND_LINE_H_
