#include "autotune/opened.h"

#include <fcntl.h>

#include <cerrno>
#include <thread>

#include "base/private_folder.h"

namespace annulus::autotune {

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

void wait_for_lock(base::FileSystem& files, int lock_file, std::chrono::milliseconds wait) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kPoll{5};
  const Clock::time_point end = Clock::now() + wait;
  while (Clock::now() < end) {
    const int code = files.lock(lock_file);
    if (code != -EWOULDBLOCK && code != -EINTR) return;
    std::this_thread::sleep_for(kPoll);
  }
}

}  // namespace annulus::autotune
