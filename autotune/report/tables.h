#ifndef ANNULUS_AUTOTUNE_REPORT_TABLES_H_
#define ANNULUS_AUTOTUNE_REPORT_TABLES_H_

// What is written of searches and of stored results, as tables.

#include <string>
#include <string_view>

#include "autotune/report/story.h"
#include "tuned/listing.h"

namespace annulus::autotune::report {

// What the journal states, and what came of the search.
std::string facts_table(const Story& story);

// The candidates that were dropped, with the reasons. Requires, as the next one: a result.
std::string dropped_table(const Story& story);
// All candidates: those whose turn came in their order, then the others by their prediction.
std::string candidates_table(const Story& story);

// A line of the table at the top of the page, of a search or of a stored result.
struct OverviewRow {
  std::string id;  // of the part of the page that it leads to
  std::string device;
  std::string shape;
  std::string winner;
  std::string ratio;
  bool predicted = false;
  std::string ending;
};
OverviewRow overview_row(const Story& story, std::string id);
OverviewRow overview_row(const tuned::ListedEntry& listed, std::string id);
std::string overview_line(const OverviewRow& row);
std::string overview_table(std::string_view lines);

// A stored result without a journal, to which that row of the overview leads, and their table.
std::string entry_line(const tuned::ListedEntry& listed, const OverviewRow& row);
std::string entries_table(std::string_view lines);

}  // namespace annulus::autotune::report

#endif  // ANNULUS_AUTOTUNE_REPORT_TABLES_H_
