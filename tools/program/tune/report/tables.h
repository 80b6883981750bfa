#ifndef ANNULUS_PROGRAM_TUNE_REPORT_TABLES_H_
#define ANNULUS_PROGRAM_TUNE_REPORT_TABLES_H_

// What is written of searches and of stored results, as tables.

#include <string>
#include <string_view>

#include "program/tune/report/document.h"

namespace annulus::program::report {

// The facts that the journal states, and the outcome of the search.
std::string facts_table(const Search& search);

// The candidates that were dropped, with the reasons. Requires, as the next one: a decision.
std::string dropped_table(const Search& search);
// All candidates: those whose turn came in their order, then the others by their prediction.
std::string candidates_table(const Search& search);

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
OverviewRow overview_row(const Search& search, std::string id);
OverviewRow overview_row(const Stored& stored, std::string id);
std::string overview_line(const OverviewRow& row);
std::string overview_table(std::string_view lines);

// A stored result without a journal, to which that row of the overview leads, and their table.
std::string entry_line(const Stored& stored, const OverviewRow& row);
std::string entries_table(std::string_view lines);

}  // namespace annulus::program::report

#endif  // ANNULUS_PROGRAM_TUNE_REPORT_TABLES_H_
