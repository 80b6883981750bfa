#ifndef ANNULUS_PROGRAM_NUMBER_OPTION_H_
#define ANNULUS_PROGRAM_NUMBER_OPTION_H_

// Options that take a number, strictly: the parser of options would take an empty word for 0, a
// number that does not fit for the nearest one that does, and -1 for 2^64 - 1.

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <limits>
#include <string>
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
      return fmt::format("'{}' is no whole number from {} to {}", text,
                         std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
    } else {
      return fmt::format("'{}' is no number", text);
    }
  });
  return validator;
}

template <typename T>
CLI::Option* add_number(CLI::App& app, const char* names, T* to, const char* help) {
  return app.add_option(names, *to, help)->check(number_of_type<T>());
}

// "AxB" around a separator; without one both are A. Throws Error{kInvalidArgument} that names
// `what`.
std::pair<std::int64_t, std::int64_t> two_numbers(const std::string& text, char separator,
                                                  std::string_view what);

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_NUMBER_OPTION_H_
