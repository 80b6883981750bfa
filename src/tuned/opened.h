#ifndef ANNULUS_TUNED_OPENED_H_
#define ANNULUS_TUNED_OPENED_H_

// Folders of entries while they are being changed.

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
    "their search path has no folder, and packs take none; add a folder to it";
// A device's folder with more entries than this is not one that a store has filled, and none of it
// is used.
inline constexpr std::size_t kMaxEntries = 10'000;

// Opens a device's folder below `folder` for writing; both are made where they are missing. A
// descriptor that the caller closes, or negative with *problem saying why.
int open_device_folder(base::FileSystem& files, const std::string& folder,
                       const std::string& device_folder, std::string* problem);

// Opens the lock file of such a folder: a descriptor that the caller closes, or negative. The lock
// (base::wait_for_lock) only keeps two processes that write one shape from overwriting the better
// result; without it, where locks do not work or somebody keeps it for long, the last writer wins.
int open_lock(base::FileSystem& files, int device_folder);

}  // namespace annulus::tuned

#endif  // ANNULUS_TUNED_OPENED_H_
