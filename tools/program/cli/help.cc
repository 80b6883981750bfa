#include "program/cli/help.h"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "base/fail.h"
#include "program/cli/command_line.h"
#include "program/cli/description.h"
#include "program/cli/number_option.h"

namespace annulus::program {

namespace {

// What is written of the whole program.
struct Form {
  std::string_view name;
  std::string (*write)(const VerbDescription& program);
};
constexpr Form kForms[] = {{"man", man_page},
                           {"bash", bash_completion},
                           {"zsh", zsh_completion},
                           {"fish", fish_completion}};

}  // namespace

void add_options(CLI::App& app, HelpArguments* arguments) {
  std::vector<std::string> forms = {arguments->as};
  for (const Form& form : kForms) forms.emplace_back(form.name);
  app.add_option("--as", arguments->as,
                 with_default("of the whole program the man page, or completion for a shell",
                              arguments->as))
      ->check(CLI::IsMember(forms));
  app.add_option("verb", arguments->verb, "the verb, as in pattern draw; default: the program")
      ->type_name("VERB");
}

Exit help(const CLI::App& parser, const HelpArguments& arguments) {
  for (const Form& form : kForms) {
    if (form.name != arguments.as) continue;
    if (!arguments.verb.empty()) {
      base::fail(ErrorCode::kInvalidArgument, "--as {} is of the whole program; give no verb",
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
  // The formatter itself, as App::help of the parser would tell of the verb that was called.
  const std::string text = app->get_formatter()->make_help(
      app, above.empty() ? app->get_name() : above + " " + app->get_name(),
      CLI::AppFormatMode::Normal);
  std::fputs(text.c_str(), stdout);
  return Exit::kOk;
}

}  // namespace annulus::program
