#ifndef ANNULUS_TUNED_OPENED_H_
#define ANNULUS_TUNED_OPENED_H_

// How folders of entries are opened and locked.

#include <chrono>
#include <cstddef>
#include <string>

#include "base/file_lock.h"
#include "base/files.h"

namespace annulus::tuned {

using base::Opened;

inline constexpr char kLockName[] = "tuned.lock";
inline constexpr std::chrono::milliseconds kLockWait{10'000};

inline constexpr char kFolderRemedy[] = "set ANNULUS_TUNED to a folder of your own";
inline constexpr char kNoFolder[] =
    "their search path has no folder, and results cannot be added to packs; add a folder to it";
// A device's folder with more entries than this was not filled by a store, and none of its entries
// are used.
inline constexpr std::size_t kMaxEntries = 10'000;

// Opens a device's folder below `folder` for writing, and creates both if they do not exist.
// Returns a descriptor that the caller closes, or a negative number; then *problem has the reason.
int open_device_folder(base::FileSystem& files, const std::string& folder,
                       const std::string& device_folder, std::string* problem);

// Opens the lock file of such a folder. Returns a descriptor that the caller closes, or a negative
// number. The lock (base::wait_for_lock) only prevents that one of two processes that write the
// same shape overwrites the better result. If locks do not work, or another process holds the lock
// for a long time, the last writer wins.
int open_lock(base::FileSystem& files, int device_folder);

}  // namespace annulus::tuned

#endif  // ANNULUS_TUNED_OPENED_H_
