#ifndef ANNULUS_AUTOTUNE_REPORT_GATHER_H_
#define ANNULUS_AUTOTUNE_REPORT_GATHER_H_

// Finds the journals and entries of which a report is made.

#include <set>
#include <string>
#include <vector>

#include "base/files.h"
#include "tuned/listing.h"

namespace annulus::autotune::report {

struct FoundJournal {
  std::string path;
  bool named = false;  // by the caller, who wants to know where it is none
};

// What is taken at most: all of it is kept in memory, and a folder may be anybody's.
struct GatherLimits {
  std::size_t files = 50'000;
  std::size_t entries = 20'000;
  std::int64_t bytes = std::int64_t{1} << 30;  // of entries and packs, which are read here
};

struct Gathered {
  GatherLimits limits = {};
  std::vector<FoundJournal> journals;
  std::vector<tuned::ListedEntry> entries;
  std::vector<std::string> left_out;  // files and lines that are neither, with the reason
  std::set<std::string> taken;        // paths of files
  std::int64_t bytes = 0;             // that were read
  std::set<std::string> reached;      // limits, as left_out has them
};

// A path is a folder of tuned results, a folder of one device, a journal, an entry or a pack; its
// first bytes say which. Each file is taken once, in the order of the paths and then of names. They
// are read wherever they are and whoever may write to them: nothing but a document is made of them.
// Throws Error{kFile} where a path cannot be read and Error{kInvalidFile} where it is none of
// these, each with the path. Where a limit is reached, what would go beyond it is not read and not
// looked at, with one line in left_out for the first such file.
void gather(base::FileSystem& files, const std::string& path, Gathered* gathered);

// The same of a place of a search path, which need not be there.
void gather_if_there(base::FileSystem& files, const std::string& path, Gathered* gathered);

}  // namespace annulus::autotune::report

#endif  // ANNULUS_AUTOTUNE_REPORT_GATHER_H_
