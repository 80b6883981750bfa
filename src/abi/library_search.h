#ifndef ANNULUS_ABI_LIBRARY_SEARCH_H_
#define ANNULUS_ABI_LIBRARY_SEARCH_H_

// The walk over the places a library may be in; abi/libraries.h is the door.

#include <string>
#include <vector>

#include "abi/libraries.h"

namespace annulus::abi {

// What one library may be called and where it may lie.
struct LibraryNames {
  std::string name;                          // for people
  std::vector<std::string> files;            // newest first
  std::vector<std::string> toolkit_folders;  // below the root of a toolkit
  std::vector<std::string> wheel_folders;    // below site-packages
  std::string install = "install it";        // what to do where it is missing
  bool ours = false;  // a part of Annulus: looked for beside it before anywhere else
};

// The first file that opens, noting every place in report->tried. An empty library and
// report->problem where there is none.
SharedLibrary find_library(const LibraryNames& names, const LibrarySearch& search,
                           LibraryReport* report);

}  // namespace annulus::abi

#endif  // ANNULUS_ABI_LIBRARY_SEARCH_H_
