#ifndef ANNULUS_PROGRAM_TUNE_REPORT_PLOTS_H_
#define ANNULUS_PROGRAM_TUNE_REPORT_PLOTS_H_

// The plots of a search.

#include <span>
#include <string>

#include "program/tune/report/document.h"

namespace annulus::program::report {

struct Plot {
  const char* title;
  // Figures with their captions. Requires: the search has a decision.
  std::string (*draw)(const Search& search);
};

// All plots, the most important ones first.
std::span<const Plot> plots();

}  // namespace annulus::program::report

#endif  // ANNULUS_PROGRAM_TUNE_REPORT_PLOTS_H_
