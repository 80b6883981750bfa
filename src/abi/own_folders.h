#ifndef ANNULUS_ABI_OWN_FOLDERS_H_
#define ANNULUS_ABI_OWN_FOLDERS_H_

// Finds the folders around the library's own file, in which the libraries that belong to it are
// searched for.

#include <string>
#include <vector>

namespace annulus::abi {

// The folder of the file that contains this function (libannulus.so, or a program that the library
// is linked into). After it come the folders in which an installation or a build tree keeps the
// libraries for such a file: lib next to that folder, and the folder above. Only existing folders,
// each once.
std::vector<std::string> own_folders();

// The folders that own_folders() would return if `file` were the library. Apart from the file's own
// folder, folders that all users may write to, such as /tmp, are left out, because any user may
// have put a library there.
std::vector<std::string> folders_around(const std::string& file);

// The folders share/annulus/NAME that were installed with the library, or that a build tree has
// next to it. Only existing folders.
std::vector<std::string> shared_folders(const std::string& name);

}  // namespace annulus::abi

#endif  // ANNULUS_ABI_OWN_FOLDERS_H_
