#ifndef ANNULUS_AUTOTUNE_REPORT_PLOTS_H_
#define ANNULUS_AUTOTUNE_REPORT_PLOTS_H_

// What is drawn of a search.

#include <span>
#include <string>

#include "autotune/report/story.h"

namespace annulus::autotune::report {

struct Plot {
  const char* title;
  // Figures with their captions. Requires: the story has a result.
  std::string (*draw)(const Story& story);
};

// Those that matter most come first.
std::span<const Plot> plots();

}  // namespace annulus::autotune::report

#endif  // ANNULUS_AUTOTUNE_REPORT_PLOTS_H_
