#ifndef ANNULUS_BASE_PRIVATE_FOLDER_H_
#define ANNULUS_BASE_PRIVATE_FOLDER_H_

// Opens a folder whose contents will be trusted, if only its owner can write to it.

#include <cstdint>
#include <string>
#include <vector>

#include "base/files.h"

namespace annulus::base {

enum class FolderUse {
  // the caller's folder: owned by the effective user, and created with mode 0700 if it is missing
  kOwn,
  // never created; may also belong to root, as files that an administrator installed do
  kOwnOrRoots,
};

// Returns a descriptor that the caller closes, or a negative number; then *problem has the reason:
// the path is not absolute, it is a symbolic link or not a folder, it has another owner, or other
// users may write to it. With kOwnOrRoots, a missing folder is not an error; then *problem is
// empty. `remedy` is appended to the message about the owner.
int open_private_folder(FileSystem& files, const std::string& path, FolderUse use,
                        const std::string& remedy, std::string* problem);

// Reads a file of such a folder. Only its owner can add files, but older files may belong to
// another user. Returns -EPERM if the file belongs to another user, or if other users may write to
// it.
FileResult try_read_private_file(FileSystem& files, int folder, FolderUse use,
                                 const std::string& name, std::int64_t max_bytes,
                                 std::vector<std::byte>* bytes);

// The reason why a file of a private folder is not used, for messages.
std::string describe_private(const FileResult& result);

// Creates the folder and its parents. Returns 0 also if it exists, else -errno.
int make_folders(FileSystem& files, const std::string& path, unsigned mode = 0700);

}  // namespace annulus::base

#endif  // ANNULUS_BASE_PRIVATE_FOLDER_H_
