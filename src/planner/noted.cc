#include "planner/noted.h"

#include <cstddef>

namespace annulus::planner {

void Noted::write_once(const base::Log& log, const std::string& text) {
  // Beyond so many different texts all are written, instead of being kept.
  constexpr std::size_t kMostTexts = 1000;
  bool first = false;
  {
    std::lock_guard lock(mutex_);
    first = texts_.size() >= kMostTexts || texts_.insert(text).second;
  }
  log.write(first ? base::LogLevel::kWarning : base::LogLevel::kDebug, "{}", text);
}

}  // namespace annulus::planner
