#ifndef ANNULUS_ABI_LIBRARY_SEARCH_H_
#define ANNULUS_ABI_LIBRARY_SEARCH_H_

// Searches the places where a library may be. Other code uses abi/libraries.h.

#include <string>
#include <vector>

#include "abi/libraries.h"

namespace annulus::abi {

// The file names of a library, and the folders that may contain it.
struct LibraryNames {
  std::string name;                          // the name in messages
  std::vector<std::string> files;            // newest first
  std::vector<std::string> toolkit_folders;  // below the root of a toolkit
  std::vector<std::string> wheel_folders;    // below site-packages
  // The remedy if it is missing.
  std::string install = "install it, or name its folder in ANNULUS_LIBRARY_PATH";
  bool ours = false;  // it is a part of Annulus, and is searched for next to Annulus first
};

// Opens the first file that can be opened. Records every place in report->tried, but folders of
// toolkits and wheels only if they exist. If no file can be opened, returns an empty result and
// sets report->problem.
SharedLibrary find_library(const LibraryNames& names, const LibrarySearch& search,
                           LibraryReport* report);

}  // namespace annulus::abi

#endif  // ANNULUS_ABI_LIBRARY_SEARCH_H_
