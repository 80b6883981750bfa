#ifndef ANNULUS_BASE_FILE_LOCK_H_
#define ANNULUS_BASE_FILE_LOCK_H_

// Files that are held open, and advisory locks of theirs.

#include <chrono>

#include "base/files.h"

namespace annulus::base {

// Closes a descriptor at the end of a scope, after a lock on it was ended; a negative one is none.
struct Opened {
  FileSystem& files;
  int file;
  Opened(FileSystem& of, int opened) : files(of), file(opened) {}
  ~Opened() { close_locked(files, file); }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

  // Does so for a descriptor that lives in another way.
  static void close_locked(FileSystem& files, int file) {
    if (file < 0) return;
    files.unlock(file);
    files.close(file);
  }
};

enum class LockOutcome {
  kLocked,
  kBusy,  // somebody else, of this process or another, has had it all the time
  kNone,  // the file system has no locks
};

// Locks a file exclusively, and waits for others up to `most`.
LockOutcome wait_for_lock(FileSystem& files, int file, std::chrono::milliseconds most);

}  // namespace annulus::base

#endif  // ANNULUS_BASE_FILE_LOCK_H_
