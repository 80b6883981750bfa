// annulus tune report: a page of searches and of what was tuned.
#include <fmt/core.h>

#include <span>

#include "annulus/tune.h"
#include "base/files.h"
#include "program/cli/output.h"
#include "program/cli/paths.h"
#include "program/input/options.h"

namespace annulus::program {

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

}  // namespace annulus::program
