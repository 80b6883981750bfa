#ifndef ANNULUS_BASE_JOIN_H_
#define ANNULUS_BASE_JOIN_H_

#include <fmt/core.h>

#include <iterator>
#include <string>
#include <string_view>

namespace annulus::base {

// The elements of a range as "{}" formats them, with `between` between any two of them. fmt::join
// would do the same, but needs <fmt/format.h>, and with it each file that joins gets its own copy
// of the code that formats floating-point numbers, 50 KB of it.
template <typename Range>
std::string join(const Range& range, std::string_view between) {
  std::string text;
  bool first = true;
  for (const auto& element : range) {
    if (!first) text += between;
    first = false;
    fmt::format_to(std::back_inserter(text), "{}", element);
  }
  return text;
}

}  // namespace annulus::base

#endif  // ANNULUS_BASE_JOIN_H_
