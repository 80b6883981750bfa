#include "program/cli/number_option.h"

#include "base/fail.h"

namespace annulus::program {
namespace {

std::int64_t whole_number(std::string_view text, std::string_view what) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    base::fail(ErrorCode::kInvalidArgument, "'{}' in {} is not a whole number", text, what);
  }
  return value;
}

}  // namespace

std::pair<std::int64_t, std::int64_t> two_numbers(const std::string& text, char separator,
                                                  std::string_view what) {
  const std::size_t at = text.find(separator);
  if (at == std::string::npos) {
    const std::int64_t value = whole_number(text, what);
    return {value, value};
  }
  return {whole_number(std::string_view(text).substr(0, at), what),
          whole_number(std::string_view(text).substr(at + 1), what)};
}

CLI::Validator duration() {
  CLI::Validator validator;
  validator.operation([](std::string& text) -> std::string {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
    const double seconds = unit == "d"   ? 86400
                           : unit == "h" ? 3600
                           : unit == "m" ? 60
                                         : unit == "s" || unit.empty();
    if (error != std::errc() || seconds == 0 || !(value > 0) || value > 1e9) {
      return fmt::format("'{}' is not a time; write 90s, 10m or 1.5h", text);
    }
    text = fmt::format("{}", value * seconds);
    return {};
  });
  return validator;
}

}  // namespace annulus::program
