#ifndef ANNULUS_PROGRAM_TUNE_REPORT_TABLES_H_
#define ANNULUS_PROGRAM_TUNE_REPORT_TABLES_H_

// Tables about searches and stored results.

#include <string>
#include <string_view>

#include "program/tune/report/document.h"

namespace annulus::program::report {

// The facts that the journal states, and the outcome of the search.
std::string facts_table(const Search& search);

// The candidates that were dropped, with the reasons. This table and the next one require a
// decision.
std::string dropped_table(const Search& search);
// All candidates: first those whose turn came, in that order, and then the others by their
// prediction.
std::string candidates_table(const Search& search);

// A row of the overview table at the top of the page, for a search or a stored result.
struct OverviewRow {
  std::string id;  // the id of the element to which the row links
  std::string device;
  std::string shape;
  std::string winner;
  std::string ratio;
  bool predicted = false;
  std::string ending;
};
OverviewRow overview_row(const Search& search, std::string id);
OverviewRow overview_row(const Stored& stored, std::string id);
std::string overview_line(const OverviewRow& row);
std::string overview_table(std::string_view lines);

// The row for a stored result without a journal, to which its row of the overview links, and the
// table of such rows.
std::string entry_line(const Stored& stored, const OverviewRow& row);
std::string entries_table(std::string_view lines);

}  // namespace annulus::program::report

#endif  // ANNULUS_PROGRAM_TUNE_REPORT_TABLES_H_
