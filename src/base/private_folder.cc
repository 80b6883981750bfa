#include "base/private_folder.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>

namespace annulus::base {
namespace {

// The write permissions of the group and of others.
constexpr unsigned kOthersWrite = 022;

bool is_owners(const FileSystem::Status& status) { return status.owner == geteuid(); }
bool is_owners_or_roots(const FileSystem::Status& status) {
  return is_owners(status) || status.owner == 0;
}

}  // namespace

FileResult try_read_private_file(FileSystem& files, int folder, FolderUse use,
                                 const std::string& name, std::int64_t max_bytes,
                                 std::vector<std::byte>* bytes) {
  using Status = FileSystem::Status;
  const AcceptStatus own = [](const Status& status) {
    return is_owners(status) && (status.mode & kOthersWrite) == 0;
  };
  const AcceptStatus own_or_roots = [](const Status& status) {
    return is_owners_or_roots(status) && (status.mode & kOthersWrite) == 0;
  };
  return try_read_file(files, folder, name, max_bytes, bytes,
                       use == FolderUse::kOwn ? own : own_or_roots);
}

std::string describe_private(const FileResult& result) {
  if (result.code == -EPERM) return "it belongs to another user, or others may write to it";
  return describe_errno(result.code);
}

// Only the last folder must be private, so its parents are not checked.
int make_folders(FileSystem& files, const std::string& path, unsigned mode) {
  int code = files.make_folder(path, mode);
  if (code == -ENOENT) {
    const std::size_t slash = path.find_last_of('/');
    if (slash == std::string::npos || slash == 0) return code;
    code = make_folders(files, path.substr(0, slash), mode);
    if (code == 0) code = files.make_folder(path, mode);
  }
  return code == -EEXIST ? 0 : code;
}

int open_private_folder(FileSystem& files, const std::string& given, FolderUse use,
                        const std::string& remedy, std::string* problem) {
  problem->clear();
  // With a slash at the end, a symbolic link would be followed.
  std::string path = given;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  if (!path.starts_with('/')) {
    // A relative path depends on the folder in which the program was started, and any user may own
    // that folder.
    *problem = fmt::format("'{}' is not an absolute path", path);
    return -1;
  }
  // O_NOFOLLOW: a link could refer to a folder that another user fills.
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
  int folder = files.open(kHere, path, kFlags, 0);
  if (folder == -ENOENT && use == FolderUse::kOwnOrRoots) return -1;
  if (folder == -ENOENT) {
    if (const int code = make_folders(files, path); code < 0) {
      *problem = fmt::format("cannot make the folder '{}': {}", path, describe_errno(code));
      return -1;
    }
    folder = files.open(kHere, path, kFlags, 0);
  }
  if (folder < 0) {
    *problem = fmt::format("cannot open the folder '{}': {}", path,
                           folder == -ENOTDIR || folder == -ELOOP
                               ? std::string("it is a file or a symbolic link")
                               : describe_errno(folder));
    return -1;
  }
  // Owner and mode are read from the open descriptor, because the path could refer to another
  // folder by now. The parent folders are not checked: a user who can write to them can only
  // replace this folder by another one, which would have to pass the same checks. Files are later
  // opened relative to the descriptor.
  FileSystem::Status status;
  const int code = files.status(folder, &status);
  const bool owned = use == FolderUse::kOwn ? is_owners(status) : is_owners_or_roots(status);
  if (code < 0) {
    *problem = fmt::format("cannot examine '{}': {}", path, describe_errno(code));
  } else if (!status.folder) {
    *problem = fmt::format("'{}' is not a folder", path);
  } else if (!owned) {
    *problem = fmt::format("'{}' belongs to user {}, not to user {}; {}", path, status.owner,
                           geteuid(), remedy);
  } else if ((status.mode & kOthersWrite) != 0) {
    *problem = fmt::format("others may write to '{}' (mode {:04o}); run chmod go-w on it", path,
                           status.mode);
  } else {
    return folder;
  }
  files.close(folder);
  return -1;
}

}  // namespace annulus::base
