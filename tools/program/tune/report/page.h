#ifndef ANNULUS_PROGRAM_TUNE_REPORT_PAGE_H_
#define ANNULUS_PROGRAM_TUNE_REPORT_PAGE_H_

// The page of a report: an overview, each search with its plots and tables, the results without a
// journal, and a list of what was left out. The page needs no other file. The same document always
// makes the same page.

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

// The most bytes of a page, apart from the list of left-out items, which has at most 200 lines.
// Searches are listed until they take a quarter of the page, and results until three quarters are
// taken. If a part of a search has no room, a line stands in its place.
constexpr std::size_t kMaxPageBytes = std::size_t{4} << 20;

// Throws what the functions of Document throw.
Page page_of(const Document& document, std::size_t max_bytes = kMaxPageBytes);

}  // namespace annulus::program::report

#endif  // ANNULUS_PROGRAM_TUNE_REPORT_PAGE_H_
