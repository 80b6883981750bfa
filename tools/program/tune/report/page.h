#ifndef ANNULUS_PROGRAM_TUNE_REPORT_PAGE_H_
#define ANNULUS_PROGRAM_TUNE_REPORT_PAGE_H_

// The page of a report: an overview, each search with its plots and tables, the results without a
// journal, and what was left out. It needs no other file, and the same document makes the same
// page.

#include <cstddef>
#include <string>
#include <vector>

#include "program/tune/report/document.h"

namespace annulus::program::report {

struct Page {
  std::string html;
  int searches = 0;
  int entries = 0;  // results without a journal
  // Searches and results of the document for which the page has no room.
  std::vector<std::string> left_out;
};

// The most bytes of a page, but for the list of what was left out, which has at most 200 lines.
// Searches are listed up to a quarter of it, and results up to three. Parts of a search without
// room are left out, with a line where they would be.
constexpr std::size_t kMostPageBytes = std::size_t{4} << 20;

// Throws what Document throws.
Page page_of(const Document& document, std::size_t most_bytes = kMostPageBytes);

}  // namespace annulus::program::report

#endif  // ANNULUS_PROGRAM_TUNE_REPORT_PAGE_H_
