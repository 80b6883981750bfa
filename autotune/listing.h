#ifndef ANNULUS_AUTOTUNE_LISTING_H_
#define ANNULUS_AUTOTUNE_LISTING_H_

// Lists everything on a search path, for all devices, for people. Plans look results up through
// TunedStore.

#include <string>
#include <vector>

#include "autotune/entry.h"
#include "base/files.h"

namespace annulus::autotune {

struct ListedEntry {
  std::string path;
  std::string device;  // identity, as the file states it
  Entry entry;
};

struct Listing {
  std::vector<ListedEntry> entries;  // in the order of the path, then of names
  std::vector<std::string> ignored;  // one line for each file or folder that is not used
};

Listing list_entries(base::FileSystem& files, const std::vector<std::string>& folders);

}  // namespace annulus::autotune

#endif  // ANNULUS_AUTOTUNE_LISTING_H_
