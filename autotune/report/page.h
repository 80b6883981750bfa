#ifndef ANNULUS_AUTOTUNE_REPORT_PAGE_H_
#define ANNULUS_AUTOTUNE_REPORT_PAGE_H_

// The page of a report: an overview, each search with its plots and tables, the results without a
// journal, and what was left out. It needs no other file, and the same files make the same page.

#include <string>
#include <vector>

#include "autotune/report/gather.h"
#include "base/files.h"

namespace annulus::autotune::report {

struct Page {
  std::string html;
  int searches = 0;
  int entries = 0;  // results without a journal
  std::vector<std::string> left_out;
};

// The most bytes that plots and tables of candidates may bring a page to. A report of many searches
// has fewer of them, and says so where they would be.
inline constexpr std::size_t kMostPageBytes = std::size_t{4} << 20;

// Reads the journals. Throws where one that was named cannot be read or is none, as gather().
Page page_of(base::FileSystem& files, Gathered gathered);

}  // namespace annulus::autotune::report

#endif  // ANNULUS_AUTOTUNE_REPORT_PAGE_H_
