#include "tuned/opened.h"

#include <fcntl.h>

#include "base/private_folder.h"

namespace annulus::tuned {

int open_device_folder(base::FileSystem& files, const std::string& folder,
                       const std::string& device_folder, std::string* problem) {
  const Opened above{files, base::open_private_folder(files, folder, base::FolderUse::kOwn,
                                                      kFolderRemedy, problem)};
  if (above.file < 0) return -1;
  return base::open_private_folder(files, folder + "/" + device_folder, base::FolderUse::kOwn,
                                   kFolderRemedy, problem);
}

int open_lock(base::FileSystem& files, int device_folder) {
  return files.open(device_folder, kLockName, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
}

}  // namespace annulus::tuned
