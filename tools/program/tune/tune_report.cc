// annulus tune report: writes searches and tuned results as an HTML page or as a JSON document.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <span>

#include "annulus/tune.h"
#include "base/fail.h"
#include "base/files.h"
#include "program/cli/number_option.h"
#include "program/cli/output.h"
#include "program/cli/paths.h"
#include "program/cli/verb.h"
#include "program/input/options.h"
#include "program/tune/report/page.h"

namespace annulus::program {
namespace {

struct TuneReportArguments {
  std::vector<std::string> paths;  // journals, results, packs or folders; empty: the search path
  std::string tuned;               // like ANNULUS_TUNED
  std::string from;                // a document that replaces `paths` and `tuned`
  std::string output;              // the file for the page; empty: the document is printed
  bool json = false;
};

// Reads the document that --from names.
std::string read_document(const TuneReportArguments& arguments, base::FileSystem& files) {
  const std::vector<std::byte> bytes =
      base::read_file(files, arguments.from, report::Document::kMaxBytes);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void print_page(const report::Page& page, const std::vector<std::string>& left_out,
                const TuneReportArguments& arguments) {
  if (arguments.json) {
    print_json({{"output", arguments.output},
                {"bytes", page.html.size()},
                {"searches", page.searches},
                {"entries", page.entries},
                {"left_out", left_out}});
    return;
  }
  print_line("report", arguments.output);
  print_line("searches", fmt::format("{}", page.searches));
  print_line("results", fmt::format("{} without a journal", page.entries));
  for (const std::string& line : left_out) print_line("left out", printable(line));
}

Exit report_tuning(const TuneReportArguments& arguments) {
  if (arguments.output.empty() && !arguments.json) {
    base::fail(ErrorCode::kInvalidArgument,
               "no output is given; give --output for a page of HTML, or --json for the "
               "document");
  }
  std::vector<std::string> read = arguments.paths;
  read.push_back(arguments.from);
  check_is_new("--output", arguments.output, read);
  base::FileSystem files;
  if (!arguments.output.empty()) base::check_can_write(files, arguments.output);
  TuningReport made;
  if (arguments.from.empty()) {
    made = tuning_report(arguments.paths, tuned_path_of(arguments.tuned));
  } else {
    made.json = read_document(arguments, files);
  }
  if (arguments.output.empty()) {
    std::fputs(made.json.c_str(), stdout);
    return made.left_out.empty() ? Exit::kOk : Exit::kPartial;
  }
  const report::Document document(
      made.json, arguments.from.empty() ? "the document" : "'" + arguments.from + "'");
  std::vector<std::string> left_out = std::move(made.left_out);
  if (!arguments.from.empty()) {
    left_out = document.left_out();
    if (const std::int64_t further = document.further_left_out(); further > 0) {
      left_out.push_back(fmt::format("and {} more", further));
    }
  }
  const report::Page page = page_of(document);
  base::write_file_atomically(files, arguments.output, std::as_bytes(std::span(page.html)));
  left_out.insert(left_out.end(), page.left_out.begin(), page.left_out.end());
  print_page(page, left_out, arguments);
  return left_out.empty() ? Exit::kOk : Exit::kPartial;
}

// The verb is a subcommand of `tune`, and excludes the options of `tune`.
void add_options(CLI::App& app, TuneReportArguments* arguments) {
  for (CLI::Option* option : app.get_parent()->get_options()) {
    if (option != app.get_parent()->get_help_ptr()) app.excludes(option);
  }
  CLI::Option* paths =
      app.add_option("paths", arguments->paths,
                     "journals, results, packs and folders of them; default: the search path")
          ->type_name(kFile);
  CLI::Option* output =
      app.add_option("--output,-o", arguments->output, "the page of HTML to write")
          ->type_name(kFile);
  CLI::Option* tuned = add_tuned_path(app, &arguments->tuned)->excludes(paths);
  app.add_option("--from", arguments->from,
                 "make the page of a document that --json has printed, without journals")
      ->type_name(kFile)
      ->check(not_empty())
      ->excludes(paths)
      ->excludes(tuned)
      ->needs(output);
  app.add_flag("--json", arguments->json,
               "print one JSON object; without --output the document that a page is made of");
}

}  // namespace

const Verb verb_tune_report = {"tune report",
                               "a page of searches and tuned results",
                               {"annulus tune report -o report.html", "annulus tune report --json"},
                               add_verb<TuneReportArguments, add_options, report_tuning>};

}  // namespace annulus::program
