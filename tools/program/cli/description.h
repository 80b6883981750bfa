#ifndef ANNULUS_PROGRAM_CLI_DESCRIPTION_H_
#define ANNULUS_PROGRAM_CLI_DESCRIPTION_H_

// The verbs and options of the command line's parser as plain data, and the texts that are made
// from them: the man page and the completions for shells.

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace annulus::program {

struct OptionDescription {
  // "-p", "--pattern"; for a positional argument, its name such as "packs"
  std::vector<std::string> names;
  std::string value;  // "FILE" or "INT"; empty for a flag
  // All possible values. Empty if any value of the type is possible.
  std::vector<std::string> words;
  std::string help;
  bool is_positional = false;
  bool is_required = false;
  bool is_list = false;
};

struct VerbDescription {
  std::string name;  // "pattern draw"; empty for the program
  std::string help;
  std::vector<OptionDescription> options;
  std::vector<VerbDescription> verbs;  // the subcommands
  bool is_group = false;               // the verb does nothing without a subcommand
};

// The result leaves out the options that only the program has, such as --version.
VerbDescription describe(const CLI::App& app);

std::string man_page(const VerbDescription& program);
std::string bash_completion(const VerbDescription& program);
std::string zsh_completion(const VerbDescription& program);
std::string fish_completion(const VerbDescription& program);

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_CLI_DESCRIPTION_H_
