#ifndef ANNULUS_BASE_LOG_H_
#define ANNULUS_BASE_LOG_H_

// Passes messages to a function of the caller, if there is one. The library never prints. A Log is
// a value that is copied to the code that uses it; there is no global Log.

#include <fmt/core.h>

#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace annulus::base {

enum class LogLevel : int { kError = 0, kWarning = 1, kInfo = 2, kDebug = 3 };

const char* to_string(LogLevel level);  // "error", "warning", "info", "debug"

// Called from any thread, possibly from several at the same time. The text has no trailing newline.
// Exceptions of the function are ignored, because a message must not make the call fail that it is
// about.
using LogFunction = std::function<void(LogLevel, std::string_view)>;

class Log {
 public:
  Log() = default;  // drops all messages
  explicit Log(LogFunction function, LogLevel most = LogLevel::kWarning)
      : function_(std::move(function)), max_level_(most) {}

  bool enabled(LogLevel level) const { return function_ && level <= max_level_; }

  template <typename... Arguments>
  void write(LogLevel level, fmt::format_string<Arguments...> format,
             Arguments&&... arguments) const {
    if (!enabled(level)) return;
    try {
      function_(level, fmt::format(format, std::forward<Arguments>(arguments)...));
    } catch (...) {
    }
  }

 private:
  LogFunction function_;
  LogLevel max_level_ = LogLevel::kWarning;
};

}  // namespace annulus::base

#endif  // ANNULUS_BASE_LOG_H_
