#ifndef ANNULUS_BASE_FILE_LOCK_H_
#define ANNULUS_BASE_FILE_LOCK_H_

// Open files and advisory locks on them.

#include <chrono>

#include "base/files.h"

namespace annulus::base {

// At the end of a scope, releases the lock on a descriptor and closes it. A negative number means
// that there is no descriptor.
struct Opened {
  FileSystem& files;
  int file;
  Opened(FileSystem& of, int opened) : files(of), file(opened) {}
  ~Opened() { close_locked(files, file); }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

  // Does the same for a descriptor that no Opened object owns.
  static void close_locked(FileSystem& files, int file) {
    if (file < 0) return;
    files.unlock(file);
    files.close(file);
  }
};

enum class LockOutcome {
  kLocked,
  kBusy,  // another holder, in this process or in another one, held the lock all the time
  kNone,  // the file system has no locks
};

// Locks a file exclusively. Waits for other holders for at most `most`.
LockOutcome wait_for_lock(FileSystem& files, int file, std::chrono::milliseconds most);

}  // namespace annulus::base

#endif  // ANNULUS_BASE_FILE_LOCK_H_
