#include "base/json.h"

#include <doctest/doctest.h>

#include <string>

#include "annulus/types.h"
#include "support/failing_new.h"

namespace annulus::base {
namespace {

// The message of the error, or "" if the text is accepted.
std::string refusal(const std::string& text, const JsonLimits& limits = {}) {
  try {
    parse_json(text, "test", limits);
    return "";
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kInvalidFile);
    return error.what();
  }
}

std::string nested(char open, char close, int depth) {
  std::string text;
  for (int i = 0; i < depth; ++i) text += open == '{' && i > 0 ? "\"k\":{" : std::string(1, open);
  return text + std::string(static_cast<std::size_t>(depth), close);
}

// The destructor allocates. An error that left it would end the process.
TEST_CASE("a document can be destroyed if no memory is left") {
  std::string text;
  for (std::size_t i = 0; i < JsonLimits{}.keys; ++i) {
    text += (i > 0 ? ",\"" : "{\"") + std::to_string(i) + "\":{\"shape\":[1,2],\"bytes\":8}";
  }
  for (int round = 0; round < 3; ++round) {
    Json json = parse_json(text + "}", "test");
    test::no_memory = true;
    json = nullptr;
    test::no_memory = false;
    CHECK(json.is_null());
  }
}

TEST_CASE("valid JSON is read in order") {
  const Json json = parse_json(R"({"b": 1, "a": [1, 2.5, "x", null, true]})", "test");
  CHECK(json.dump() == R"({"b":1,"a":[1,2.5,"x",null,true]})");
}

TEST_CASE("depth is bounded, far before it could overflow a stack") {
  CHECK(refusal(nested('[', ']', 16)).empty());
  CHECK(refusal(nested('{', '}', 16)).empty());
  CHECK(refusal(nested('[', ']', 18)).find("deeper") != std::string::npos);
  CHECK(refusal(nested('{', '}', 18)).find("deeper") != std::string::npos);
  CHECK(refusal(nested('[', ']', 1'000'000)).find("deeper") != std::string::npos);
  CHECK(refusal(std::string(1'000'000, '[')).find("deeper") != std::string::npos);
}

TEST_CASE("size is bounded") {
  CHECK(refusal("[1,2]", {.bytes = 5}).empty());
  CHECK(refusal("[1,2]", {.bytes = 4}).find("5 bytes") != std::string::npos);
}

TEST_CASE("a key that is there twice is refused, in the same object only") {
  CHECK(refusal(R"({"a":1,"a":2})").find("'a'") != std::string::npos);
  CHECK(refusal(R"([{"a":1},{"a":2,"b":{"a":3}}])").empty());
  CHECK(refusal(R"({"b":{"a":1},"a":2,"c":[{"x":1,"x":1}]})").find("'x'") != std::string::npos);
}

TEST_CASE("what is no JSON is refused") {
  for (const char* text : {"", "{", "[1,]", "{\"a\"}", "nul", "1 2", "\"\xff\"", "[1e999]", "'a'",
                           "{\"a\":1}}", "[01]", "// comment\n1"}) {
    CAPTURE(text);
    CHECK(refusal(text).find("not valid JSON") != std::string::npos);
  }
}

}  // namespace
}  // namespace annulus::base
