#ifndef ANNULUS_ABI_OWN_FOLDERS_H_
#define ANNULUS_ABI_OWN_FOLDERS_H_

// Finds the folders around this code itself, where libraries that belong to it are looked for.

#include <string>
#include <vector>

namespace annulus::abi {

// The folder of the file that holds this function (libannulus.so, or a program that the rooms are
// linked into), then the folders in which an installation or a build tree keeps the libraries of
// such a file: lib beside that folder, and the folder above. Only folders that exist, each once.
std::vector<std::string> own_folders();

// The folders that own_folders() would give if `file` were the library. Except for the file's own
// folder, folders that everybody may write to are left out, such as /tmp, since anybody may have
// put a library there.
std::vector<std::string> folders_around(const std::string& file);

// The folders share/annulus/NAME that were installed with the library, or that a build tree keeps
// beside it, as far as they exist.
std::vector<std::string> shared_folders(const std::string& name);

}  // namespace annulus::abi

#endif  // ANNULUS_ABI_OWN_FOLDERS_H_
