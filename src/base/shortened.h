#ifndef ANNULUS_BASE_SHORTENED_H_
#define ANNULUS_BASE_SHORTENED_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace annulus::base {

// The beginning of a text, for messages. If the text is longer, "..." follows.
inline std::string shortened(std::string_view text) {
  constexpr std::size_t kMost = 160;
  return std::string(text.substr(0, kMost)) + (text.size() > kMost ? "..." : "");
}

}  // namespace annulus::base

#endif  // ANNULUS_BASE_SHORTENED_H_
