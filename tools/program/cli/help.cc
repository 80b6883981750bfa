// annulus help: prints the help of a verb, or a text about all verbs such as the man page.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "base/fail.h"
#include "program/cli/command_line.h"
#include "program/cli/description.h"
#include "program/cli/number_option.h"
#include "program/cli/verb.h"

namespace annulus::program {
namespace {

struct HelpArguments {
  std::vector<std::string> verb;  // {"pattern", "draw"}; empty for the program
  std::string as = "text";
};

// A text about the whole program.
struct Form {
  std::string_view name;
  std::string (*write)(const VerbDescription& program);
};
constexpr Form kForms[] = {{"man", man_page},
                           {"bash", bash_completion},
                           {"zsh", zsh_completion},
                           {"fish", fish_completion}};

void add_options(CLI::App& app, HelpArguments* arguments) {
  std::vector<std::string> forms = {arguments->as};
  for (const Form& form : kForms) forms.emplace_back(form.name);
  app.add_option(
         "--as", arguments->as,
         with_default("print the man page of the whole program, or its completion for a shell",
                      arguments->as))
      ->check(CLI::IsMember(forms));
  app.add_option("verb", arguments->verb, "the verb, as in pattern draw; default: the program")
      ->type_name("VERB");
}

// Throws Error{kInvalidArgument} for an unknown verb, or for a verb together with a form other than
// text.
Exit help(const CLI::App& parser, const HelpArguments& arguments) {
  for (const Form& form : kForms) {
    if (form.name != arguments.as) continue;
    if (!arguments.verb.empty()) {
      base::fail(ErrorCode::kInvalidArgument, "--as {} describes the whole program; give no verb",
                 arguments.as);
    }
    std::fputs(form.write(describe(parser)).c_str(), stdout);
    return Exit::kOk;
  }
  const CLI::App* app = &parser;
  std::string above;
  for (const std::string& word : arguments.verb) {
    const CLI::App* below = nullptr;
    for (const CLI::App* each : app->get_subcommands([](const CLI::App*) { return true; })) {
      if (each->get_name() == word) below = each;
    }
    if (below == nullptr) {
      const std::string names = names_below(*app);
      base::fail(ErrorCode::kInvalidArgument, "{} has no verb '{}'{}{}", full_name(*app), word,
                 names.empty() ? "" : "; there are ", names);
    }
    above = full_name(*app);
    app = below;
  }
  // App::help of the parser would print the help of the verb that was called, which is `help`. So
  // the formatter is called directly.
  const std::string text = app->get_formatter()->make_help(
      app, above.empty() ? app->get_name() : above + " " + app->get_name(),
      CLI::AppFormatMode::Normal);
  std::fputs(text.c_str(), stdout);
  return Exit::kOk;
}

std::function<Exit()> add_help(CLI::App& app) {
  const auto arguments = std::make_shared<HelpArguments>();
  add_options(app, arguments.get());
  return [&app, arguments] { return help(*app.get_parent(), *arguments); };
}

}  // namespace

const Verb verb_help = {
    "help", "the text that --help prints for a verb", {"annulus help pattern draw"}, add_help};

}  // namespace annulus::program
