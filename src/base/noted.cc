#include "base/noted.h"

#include <cstddef>

namespace annulus::base {

void Noted::write_once(const Log& log, const std::string& text) {
  // Beyond so many different texts all are written, instead of being kept.
  constexpr std::size_t kMostTexts = 1000;
  bool first = false;
  {
    std::lock_guard lock(mutex_);
    first = texts_.size() >= kMostTexts || texts_.insert(text).second;
  }
  log.write(first ? LogLevel::kWarning : LogLevel::kDebug, "{}", text);
}

}  // namespace annulus::base
