#include "program/cli/description.h"

#include <CLI/CLI.hpp>
#include <sstream>

#include "program/cli/command_line.h"

namespace annulus::program {
namespace {

// Splits "TEXT:{a,b}" into the type of the value and the words that the value may be.
void take_type(const std::string& type, OptionDescription* option) {
  option->value = type.substr(0, type.find(':'));
  const std::size_t open = type.find('{');
  const std::size_t close = type.find('}');
  if (open == std::string::npos || close == std::string::npos) return;
  std::istringstream words(type.substr(open + 1, close - open - 1));
  for (std::string word; std::getline(words, word, ',');) option->words.push_back(word);
}

OptionDescription describe_option(const CLI::Option& option) {
  OptionDescription described;
  described.help = option.get_description();
  described.is_required = option.get_required();
  described.is_list = option.get_expected_max() > 1;
  described.is_positional = !option.nonpositional();
  if (option.get_items_expected_max() > 0) take_type(option.get_type_name(), &described);
  if (described.is_positional) {
    described.names = {option.get_name(true)};
    return described;
  }
  for (const std::string& name : option.get_snames()) described.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) described.names.push_back("--" + name);
  return described;
}

}  // namespace

VerbDescription describe(const CLI::App& app) {
  VerbDescription described;
  const std::string name = full_name(app);
  if (app.get_parent() != nullptr) described.name = name.substr(name.find(' ') + 1);
  described.help = app.get_description();
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_group().empty()) described.options.push_back(describe_option(*option));
  }
  described.is_group = app.get_require_subcommand_min() > 0;
  for (const CLI::App* below : app.get_subcommands([](const CLI::App*) { return true; })) {
    described.verbs.push_back(describe(*below));
  }
  return described;
}

}  // namespace annulus::program
