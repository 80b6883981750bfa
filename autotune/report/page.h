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

// What a page is bounded by. What finds no room is left out: whole searches and results with a line
// in left_out, parts of a search with one where they would be.
struct PageLimits {
  std::size_t searches = 1000;
  std::size_t entries = 2000;
  // All but the list of what was left out, which has at most 200 lines. Searches are listed up to a
  // quarter of it, and results up to three.
  std::size_t bytes = std::size_t{4} << 20;
  // Bytes of journals that are read, and replay_steps() of these. No clock, so that the same files
  // make the same page; it takes a minute or two.
  std::int64_t work = 2'000'000'000;
};

// Reads the journals. Throws where one that was named cannot be read or is none, as gather().
Page page_of(base::FileSystem& files, Gathered gathered, const PageLimits& limits = {});

}  // namespace annulus::autotune::report

#endif  // ANNULUS_AUTOTUNE_REPORT_PAGE_H_
