// annulus tune report: a page of searches and of what was tuned.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <span>

#include "annulus/tune.h"
#include "base/files.h"
#include "program/cli/number_option.h"
#include "program/cli/output.h"
#include "program/cli/paths.h"
#include "program/cli/verb.h"
#include "program/input/options.h"

namespace annulus::program {
namespace {

struct TuneReportArguments {
  std::vector<std::string> paths;  // journals, results, packs, folders; empty: the search path
  std::string tuned;               // as ANNULUS_TUNED
  std::string output;
  bool json = false;
};

Exit report_tuning(const TuneReportArguments& arguments) {
  check_is_new("--output", arguments.output, arguments.paths);
  base::FileSystem files;
  base::check_can_write(files, arguments.output);
  const TuningReport report = tuning_report(arguments.paths, tuned_path_of(arguments.tuned));
  base::write_file_atomically(files, arguments.output, std::as_bytes(std::span(report.page)));
  if (arguments.json) {
    base::Json json;
    json["output"] = arguments.output;
    json["bytes"] = report.page.size();
    json["searches"] = report.searches;
    json["entries"] = report.entries;
    json["left_out"] = report.left_out;
    print_json(json);
  } else {
    print_line("report", arguments.output);
    print_line("searches", fmt::format("{}", report.searches));
    print_line("results", fmt::format("{} without a journal", report.entries));
    for (const std::string& line : report.left_out) print_line("left out", printable(line));
  }
  return report.left_out.empty() ? Exit::kOk : Exit::kPartial;
}

// These options are those of a verb below `tune`, with whose own options it is not given.
void add_options(CLI::App& app, TuneReportArguments* arguments) {
  for (CLI::Option* option : app.get_parent()->get_options()) {
    if (option != app.get_parent()->get_help_ptr()) app.excludes(option);
  }
  CLI::Option* paths =
      app.add_option("paths", arguments->paths,
                     "journals, results, packs and folders of them; default: the search path")
          ->type_name(kFile);
  app.add_option("--output,-o", arguments->output, "the page of HTML to write")
      ->type_name(kFile)
      ->required();
  add_tuned_path(app, &arguments->tuned)->excludes(paths);
  add_json(app, &arguments->json);
}

}  // namespace

const Verb verb_tune_report = {"tune report",
                               "a page that shows searches and what was tuned",
                               {"annulus tune report -o report.html"},
                               add_verb<TuneReportArguments, add_options, report_tuning>};

}  // namespace annulus::program
