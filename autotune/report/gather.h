#ifndef ANNULUS_AUTOTUNE_REPORT_GATHER_H_
#define ANNULUS_AUTOTUNE_REPORT_GATHER_H_

// Finds the journals and entries that a report is made from.

#include <set>
#include <string>
#include <vector>

#include "base/files.h"
#include "tuned/listing.h"

namespace annulus::autotune::report {

struct FoundJournal {
  std::string path;
  bool named = false;  // the caller named it, so it is an error if it is not a journal
};

// The limits of what is read. All of it is kept in memory, and a folder may come from an untrusted
// source.
struct GatherLimits {
  std::size_t files = 50'000;
  std::size_t entries = 20'000;
  // the most bytes of entries and packs, which gather() reads
  std::int64_t bytes = std::int64_t{1} << 30;
};

struct Gathered {
  GatherLimits limits = {};
  std::vector<FoundJournal> journals;
  std::vector<tuned::ListedEntry> entries;
  std::vector<std::string> left_out;  // other files and lines, with the reason
  std::set<std::string> taken;        // the paths of all files that were taken
  std::int64_t bytes = 0;             // the number of bytes that were read
  std::set<std::string> reached;      // the limits that were reached, in the words of left_out
};

// Adds the contents of a path: a folder of tuned results, a folder of one device, a journal, an
// entry or a pack. The first bytes of a file determine its kind. Each file is taken once, in the
// order of the paths and then of names. Files are read wherever they are, even if other users may
// write to them, because only a document is made from them. Throws Error{kFile} if a path cannot be
// read, and Error{kInvalidFile} if the file has another kind, each with the path. If a limit is
// reached, further files are not read, and left_out gets one line for the first of them.
void gather(base::FileSystem& files, const std::string& path, Gathered* gathered);

// Does the same for an element of a search path, which need not exist.
void gather_if_there(base::FileSystem& files, const std::string& path, Gathered* gathered);

}  // namespace annulus::autotune::report

#endif  // ANNULUS_AUTOTUNE_REPORT_GATHER_H_
