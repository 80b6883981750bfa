#include "base/file_lock.h"

#include <cerrno>
#include <thread>

namespace annulus::base {

LockOutcome wait_for_lock(FileSystem& files, int file, std::chrono::milliseconds most) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kPoll{5};
  const Clock::time_point end = Clock::now() + most;
  while (true) {
    const int code = files.lock(file);
    if (code == 0) return LockOutcome::kLocked;
    if (code != -EWOULDBLOCK && code != -EINTR) return LockOutcome::kNone;
    if (Clock::now() >= end) return LockOutcome::kBusy;
    std::this_thread::sleep_for(kPoll);
  }
}

}  // namespace annulus::base
