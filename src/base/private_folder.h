#ifndef ANNULUS_BASE_PRIVATE_FOLDER_H_
#define ANNULUS_BASE_PRIVATE_FOLDER_H_

// Opens a folder whose contents will be trusted, and only where nobody but its owner can write to
// it.

#include <cstdint>
#include <string>
#include <vector>

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

// Reads a file of such a folder, which holds what its owner alone could write once it is private: a
// file that was there before may be another's. -EPERM where the file belongs to somebody else, or
// others may write to it.
FileResult try_read_private_file(FileSystem& files, int folder, FolderUse use,
                                 const std::string& name, std::int64_t max_bytes,
                                 std::vector<std::byte>* bytes);

// Why a file of a private folder is not used, for people.
std::string describe_private(const FileResult& result);

// Makes the folder and those above it. Returns 0 also where it exists, else -errno.
int make_folders(FileSystem& files, const std::string& path, unsigned mode = 0700);

}  // namespace annulus::base

#endif  // ANNULUS_BASE_PRIVATE_FOLDER_H_
