#ifndef ANNULUS_BASE_PRIVATE_FOLDER_H_
#define ANNULUS_BASE_PRIVATE_FOLDER_H_

// Opening a folder whose contents will be believed: only where nobody but its owner can fill it.

#include <string>

#include "base/files.h"

namespace annulus::base {

enum class FolderUse {
  kOwn,  // the caller's: made with mode 0700 where it is missing, owned by the effective user
  kOwnOrRoots,  // never made; may also belong to root, as what an administrator has installed does
};

// A descriptor that the caller closes, or negative with *problem saying why not: a path that is not
// absolute, a symbolic link or no folder, another owner, others may write to it. Where kOwnOrRoots
// finds nothing the problem is empty: that is no fault. `remedy` ends the message about the owner.
int open_private_folder(FileSystem& files, const std::string& path, FolderUse use,
                        const std::string& remedy, std::string* problem);

// The folder and those above it; 0 also where it is there already.
int make_folders(FileSystem& files, const std::string& path);

}  // namespace annulus::base

#endif  // ANNULUS_BASE_PRIVATE_FOLDER_H_
