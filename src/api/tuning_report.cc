// The report of searches and results. A build with ANNULUS_TUNER=OFF has tune_left_out.cc in place
// of this file, because a report repeats the decisions of searches.
#include <utility>

#include "annulus/tune.h"
#include "api/tuned_places.h"
#include "autotune/report/document.h"
#include "autotune/report/gather.h"
#include "base/env.h"

namespace annulus::inline v0 {

TuningReport tuning_report(const std::vector<std::string>& paths,
                           const std::optional<std::string>& tuned_path) {
  base::FileSystem files;
  autotune::report::Gathered gathered;
  for (const std::string& path : paths) autotune::report::gather(files, path, &gathered);
  if (paths.empty()) {
    for (const std::string& place : api::tuned_places(tuned_path, base::read_environment()).all()) {
      autotune::report::gather_if_there(files, place, &gathered);
    }
  }
  autotune::report::Document document = autotune::report::document_of(files, std::move(gathered));
  return {std::move(document.json), document.searches, document.entries,
          std::move(document.left_out)};
}

}  // namespace annulus::inline v0
