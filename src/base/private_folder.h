#ifndef ANNULUS_BASE_PRIVATE_FOLDER_H_
#define ANNULUS_BASE_PRIVATE_FOLDER_H_

// Opens a folder whose contents will be trusted, and only where nobody but its owner can write to
// it.

#include <string>

#include "base/files.h"

namespace annulus::base {

enum class FolderUse {
  kOwn,  // the caller's: made with mode 0700 where it is missing, owned by the effective user
  kOwnOrRoots,  // never made; may also belong to root, as files that an administrator installed do
};

// A descriptor that the caller closes, or negative with *problem saying why not: a path that is not
// absolute, a symbolic link or no folder, another owner, others may write to it. With kOwnOrRoots a
// folder that does not exist is no fault: the problem is then empty. `remedy` ends the message
// about the owner.
int open_private_folder(FileSystem& files, const std::string& path, FolderUse use,
                        const std::string& remedy, std::string* problem);

// Makes the folder and those above it. Returns 0 also where it exists, else -errno.
int make_folders(FileSystem& files, const std::string& path);

}  // namespace annulus::base

#endif  // ANNULUS_BASE_PRIVATE_FOLDER_H_
