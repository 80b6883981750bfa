#include "program/cli/text_error.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "program/cli/output.h"

namespace annulus::program {
namespace {

// The column, from 0. Nothing if the error does not name a column of the text.
std::optional<std::size_t> column_of(std::string_view error, std::size_t length) {
  constexpr std::string_view kBegin = "column ";
  if (!error.starts_with(kBegin)) return {};
  std::size_t column = 0;
  const char* const last = error.data() + error.size();
  const auto [end, failed] = std::from_chars(error.data() + kBegin.size(), last, column);
  if (failed != std::errc() || end == last || (*end != ':' && *end != ' ')) return {};
  // The position after the last character is a column too.
  if (column < 1 || column > length + 1) return {};
  return column - 1;
}

std::string excerpt(std::string_view text, std::size_t column) {
  // The width of a terminal line. If the text is cut on both sides, the place is in the middle.
  constexpr std::size_t kWidth = 72;
  std::size_t first = column > kWidth / 2 ? column - kWidth / 2 : 0;
  if (text.size() <= kWidth) first = 0;
  std::string shown(text.substr(first, kWidth));
  for (char& c : shown) {
    if (c == '\n' || c == '\t' || c == '\r') c = ' ';
  }
  const std::string_view before = first > 0 ? "... " : "";
  const std::string_view after = first + kWidth < text.size() ? " ..." : "";
  return fmt::format("  {}{}{}\n  {}^\n", before, printable(shown), after,
                     std::string(before.size() + column - first, ' '));
}

}  // namespace

void parse_shown(std::string_view text, const std::function<void()>& parse) {
  try {
    parse();
  } catch (const Error& error) {
    const std::optional<std::size_t> column = column_of(error.what(), text.size());
    if (!column) throw;
    throw TextError(error, excerpt(text, *column));
  }
}

}  // namespace annulus::program
