#ifndef ANNULUS_ABI_LIBRARY_SEARCH_H_
#define ANNULUS_ABI_LIBRARY_SEARCH_H_

// Searches the places where a library may be; other rooms use abi/libraries.h.

#include <string>
#include <vector>

#include "abi/libraries.h"

namespace annulus::abi {

// The file names of one library and the folders that may hold it.
struct LibraryNames {
  std::string name;                          // for people
  std::vector<std::string> files;            // newest first
  std::vector<std::string> toolkit_folders;  // below the root of a toolkit
  std::vector<std::string> wheel_folders;    // below site-packages
  // What to do where it is missing.
  std::string install = "install it, or name its folder in ANNULUS_LIBRARY_PATH";
  bool ours = false;  // it is a part of Annulus, and looked for beside Annulus first
};

// Opens the first file that can be opened, and notes every place in report->tried, folders of
// toolkits and wheels only if they exist. Where there is no such file, the result is empty and
// report->problem is set.
SharedLibrary find_library(const LibraryNames& names, const LibrarySearch& search,
                           LibraryReport* report);

}  // namespace annulus::abi

#endif  // ANNULUS_ABI_LIBRARY_SEARCH_H_
