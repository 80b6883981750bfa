#include "base/json.h"

#include <set>
#include <string>
#include <vector>

#include "base/fail.h"

namespace annulus::base {

Json parse_json(std::string_view text, std::string_view what, const JsonLimits& limits) {
  if (text.size() > limits.bytes) {
    fail(ErrorCode::kInvalidFile, "{}: {} bytes of JSON, at most {} are read", what, text.size(),
         limits.bytes);
  }
  std::vector<std::set<std::string>> keys;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    using Event = Json::parse_event_t;
    if (depth > limits.depth) {
      fail(ErrorCode::kInvalidFile, "{}: JSON nests deeper than {} levels", what, limits.depth);
    }
    if (event == Event::object_start) keys.emplace_back();
    if (event == Event::object_end) keys.pop_back();
    if (event == Event::key && keys.back().size() == limits.keys) {
      fail(ErrorCode::kInvalidFile, "{}: an object has more than {} keys", what, limits.keys);
    }
    if (event == Event::key && !keys.back().insert(parsed.get<std::string>()).second) {
      fail(ErrorCode::kInvalidFile, "{}: key '{}' is there twice", what, parsed.get<std::string>());
    }
    return true;
  };
  try {
    return Json::parse(text.begin(), text.end(), watch);
  } catch (const Json::exception& error) {
    fail(ErrorCode::kInvalidFile, "{}: not valid JSON: {}", what, error.what());
  }
}

}  // namespace annulus::base
