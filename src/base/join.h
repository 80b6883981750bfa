#ifndef ANNULUS_BASE_JOIN_H_
#define ANNULUS_BASE_JOIN_H_

#include <fmt/core.h>

#include <iterator>
#include <string>
#include <string_view>

namespace annulus::base {

// The elements of a range, formatted by "{}", separated by `between`. fmt::join does the same but
// requires <fmt/format.h>. With that header, each file that joins would get its own copy of the
// code that formats floating-point numbers, 50 KB each.
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
