#ifndef ANNULUS_ABI_OWN_FOLDERS_H_
#define ANNULUS_ABI_OWN_FOLDERS_H_

// Where this code itself lies: libraries that belong to it are looked for there.

#include <string>
#include <vector>

namespace annulus::abi {

// The folder of the file that holds this function (libannulus.so, or a program that has the rooms
// linked into it), then the folders in which an installation or a build tree keeps libraries of
// such a file: lib beside that folder, and the folder above. Only those that exist, each once.
std::vector<std::string> own_folders();

// The same for a file of that name. Beside its own, a folder into which everybody may write is left
// out, such as /tmp around a folder of somebody's: what lies there may be anyone's.
std::vector<std::string> folders_around(const std::string& file);

}  // namespace annulus::abi

#endif  // ANNULUS_ABI_OWN_FOLDERS_H_
