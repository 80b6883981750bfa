#include "program/help.h"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "base/fail.h"
#include "program/command_line.h"

namespace annulus::program {

void add_options(CLI::App& app, HelpArguments* arguments) {
  app.add_option("verb", arguments->verb, "the verb, as in pattern draw; default: the program")
      ->type_name("VERB");
}

Exit help(const CLI::App& parser, const HelpArguments& arguments) {
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
