#include "base/noted.h"

#include <cstddef>

namespace annulus::base {

void Noted::write_once(const Log& log, const std::string& text) {
  // After this number of different texts, further texts are always written and not stored.
  constexpr std::size_t kMaxTexts = 1000;
  bool first = false;
  {
    std::lock_guard lock(mutex_);
    first = texts_.size() >= kMaxTexts || texts_.insert(text).second;
  }
  log.write(first ? LogLevel::kWarning : LogLevel::kDebug, "{}", text);
}

}  // namespace annulus::base
