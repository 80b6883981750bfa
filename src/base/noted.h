#ifndef ANNULUS_BASE_NOTED_H_
#define ANNULUS_BASE_NOTED_H_

// Messages that a device logs only once, even if many plans cause the same message.

#include <mutex>
#include <set>
#include <string>

#include "base/log.h"

namespace annulus::base {

class Noted {
 public:
  // Writes the first time as a warning, and later at the debug level. May be called from any
  // thread.
  void write_once(const Log& log, const std::string& text);

 private:
  std::mutex mutex_;
  std::set<std::string> texts_;  // guarded by mutex_; at most kMaxTexts
};

}  // namespace annulus::base

#endif  // ANNULUS_BASE_NOTED_H_
