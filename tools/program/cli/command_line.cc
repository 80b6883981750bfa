#include "program/cli/command_line.h"

#include <fmt/core.h>

#include "annulus/types.h"
#include "annulus/version.h"

namespace annulus::program {
namespace {

// The verbs of verbs.def, in their order.
const std::vector<const Verb*>& all_verbs() {
  static const std::vector<const Verb*> verbs = {
#define VERB(name) &verb_##name,
#define GROUP(name, help)
#include "program/cli/verbs.def"
  };
  return verbs;
}

std::string exit_codes_text() {
  std::string text;
  for (const ExitMeaning& each : exit_meanings()) {
    text += fmt::format("{}{} {}", text.empty() ? "Exit codes: " : ", ",
                        static_cast<int>(each.exit), each.meaning);
  }
  return text + ".";
}

std::string footer_of(const Verb& verb) {
  std::string text = "Examples:\n";
  for (const std::string_view line : verb.examples) text += fmt::format("  {}\n", line);
  return text + "\n" + exit_codes_text();
}

}  // namespace

std::vector<std::string_view> examples_of(std::string_view verb) {
  for (const Verb* each : all_verbs()) {
    if (each->name == verb) return each->examples;
  }
  return {};
}

std::string full_name(const CLI::App& app) {
  if (app.get_parent() == nullptr) return app.get_name();
  return full_name(*app.get_parent()) + " " + app.get_name();
}

std::string names_below(const CLI::App& app) {
  const std::vector<const CLI::App*> below =
      app.get_subcommands([](const CLI::App*) { return true; });
  std::string text;
  for (const CLI::App* each : below) {
    if (!text.empty()) text += each == below.back() ? " or " : ", ";
    text += each->get_name();
  }
  return text;
}

void CommandLine::add(const Verb& verb) {
  CLI::App* above = &parser;
  std::string name(verb.name);
  if (const std::size_t blank = name.find(' '); blank != name.npos) {
    above = parser.get_subcommand(name.substr(0, blank));
    name.erase(0, blank + 1);
  }
  CLI::App* app = above->add_subcommand(name, std::string(verb.help));
  app->footer(footer_of(verb));
  verbs.push_back({&verb, app, verb.add(*app)});
}

void CommandLine::add_group(const char* name, const char* help) {
  parser.add_subcommand(name, help)->require_subcommand(1);
}

CommandLine::CommandLine() {
  parser.name("annulus");
  parser.require_subcommand(1);
  parser.footer(exit_codes_text());  // inherited by the verbs
  parser.set_version_flag("--version", std::to_string(ANNULUS_VERSION_MAJOR) + "." +
                                           std::to_string(ANNULUS_VERSION_MINOR) + "." +
                                           std::to_string(ANNULUS_VERSION_PATCH));

#define VERB(name) add(verb_##name);
#define GROUP(name, help) add_group(#name, help);
#include "program/cli/verbs.def"
}

}  // namespace annulus::program
