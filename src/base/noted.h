#ifndef ANNULUS_BASE_NOTED_H_
#define ANNULUS_BASE_NOTED_H_

// Notes that a device writes once, however often plans come upon the same.

#include <mutex>
#include <set>
#include <string>

#include "base/log.h"

namespace annulus::base {

class Noted {
 public:
  // As a warning the first time, then at the level of debugging. From any thread.
  void write_once(const Log& log, const std::string& text);

 private:
  std::mutex mutex_;
  std::set<std::string> texts_;  // guarded by mutex_; no more than kMostTexts
};

}  // namespace annulus::base

#endif  // ANNULUS_BASE_NOTED_H_
