#ifndef ANNULUS_PROGRAM_CLI_NUMBER_OPTION_H_
#define ANNULUS_PROGRAM_CLI_NUMBER_OPTION_H_

// Options that take a number, parsed strictly. The parser of CLI11 would accept an empty word as 0,
// clamp a number that is out of range, and accept -1 as 2^64 - 1.

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace annulus::program {

template <typename T>
CLI::Validator number_of_type() {
  CLI::Validator validator;
  validator.operation([](std::string& text) -> std::string {
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && end == text.data() + text.size()) return {};
    if constexpr (std::is_integral_v<T>) {
      return fmt::format("'{}' is not a whole number from {} to {}", text,
                         std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
    } else {
      return fmt::format("'{}' is not a number", text);
    }
  });
  return validator;
}

// The help of an option with its default value added, unless the help already states the default.
template <typename T>
std::string with_default(std::string_view help, const T& value) {
  if (help.find("default: ") != std::string_view::npos) return std::string(help);
  return fmt::format("{}; default: {}", help, value);
}

template <typename T>
CLI::Option* add_number(CLI::App& app, const char* names, T* to, std::string_view help) {
  return app.add_option(names, *to, with_default(help, *to))->check(number_of_type<T>());
}

// The types of option values as help shows them. Completions offer files for kFile and folders for
// kFolder, and the words of {a,b} as CLI::IsMember writes them.
constexpr const char* kFile = "FILE";
constexpr const char* kFolder = "FOLDER";
constexpr const char* kPaths = "PATHS";  // several paths, separated by ':'
constexpr const char* kBlockSize = "RxC";

// Parses "AxB" with the given separator. Without a separator both numbers are A. Throws
// Error{kInvalidArgument} that names `what`.
std::pair<std::int64_t, std::int64_t> two_numbers(const std::string& text, char separator,
                                                  std::string_view what);

// Accepts a duration such as "10m", "90s", "1.5h", "30d" or "300", and replaces it by its seconds.
CLI::Validator duration();

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_CLI_NUMBER_OPTION_H_
