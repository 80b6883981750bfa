#ifndef ANNULUS_BASE_JSON_H_
#define ANNULUS_BASE_JSON_H_

// The only use of the JSON parser for text that comes from outside: size and depth are bounded (a
// deep document overflows the stack of the library behind it, and its objects search their keys one
// by one), duplicate keys are refused.

#include <nlohmann/json.hpp>
#include <string_view>

namespace annulus::base {

using Json = nlohmann::ordered_json;

struct JsonLimits {
  std::size_t bytes = 16u << 20;
  int depth = 16;
  std::size_t keys = 20'000;  // keys of one object
};

// Throws Error{kInvalidFile}; `what` names the text in the message.
Json parse_json(std::string_view text, std::string_view what, const JsonLimits& limits = {});

}  // namespace annulus::base

#endif  // ANNULUS_BASE_JSON_H_
