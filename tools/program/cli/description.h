#ifndef ANNULUS_PROGRAM_CLI_DESCRIPTION_H_
#define ANNULUS_PROGRAM_CLI_DESCRIPTION_H_

// The verbs and options that the parser of the command line knows, as plain data, and what is
// written of them: the man page and completions of shells.

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace annulus::program {

struct OptionDescription {
  std::vector<std::string> names;  // "-p", "--pattern"; of a positional "packs"
  std::string value;               // "FILE", "INT"; empty: a flag
  std::vector<std::string> words;  // all values that there are; empty: any of that kind
  std::string help;
  bool is_positional = false;
  bool is_required = false;
  bool is_list = false;
};

struct VerbDescription {
  std::string name;  // "pattern draw"; empty: the program
  std::string help;
  std::vector<OptionDescription> options;
  std::vector<VerbDescription> verbs;  // those below
  bool is_group = false;               // it does nothing without one of them
};

// Without options that are for the program alone.
VerbDescription describe(const CLI::App& app);

std::string man_page(const VerbDescription& program);
std::string bash_completion(const VerbDescription& program);
std::string zsh_completion(const VerbDescription& program);
std::string fish_completion(const VerbDescription& program);

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_CLI_DESCRIPTION_H_
