// What a module may not hold: refused when it is loaded, with a reason, and never guessed.

#include <doctest/doctest.h>

#include <string>

#include "annulus/error.h"
#include "sim/executor.h"
#include "sim/memory.h"

namespace annulus::sim {
namespace {

constexpr const char* kHead = ".version 8.0\n.target sm_80\n.address_size 64\n";

Error failure(const std::string& text) {
  GlobalMemory memory(1 << 20);
  try {
    LoadedModule::load(kHead + text, memory);
  } catch (const Error& error) {
    return error;
  }
  FAIL("loaded: " << text);
  return Error(ErrorCode::kInternal, "");
}

std::string kernel(const std::string& body) { return ".visible .entry k() {\n" + body + "\n}\n"; }

void check_refused(const std::string& text, ErrorCode code, const char* part) {
  const Error error = failure(text);
  CHECK_MESSAGE(error.code() == code, error.what());
  CHECK_MESSAGE(std::string(error.what()).find(part) != std::string::npos, error.what());
}

TEST_CASE("functions that call themselves are refused") {
  const std::string once = ".func f();\n.func f() { call f; ret; }\n";
  check_refused(once + kernel("call f;"), ErrorCode::kUnsupported, "recursion");
  const std::string round = ".func g();\n.func f() { call g; ret; }\n.func g() { call f; ret; }\n";
  check_refused(round + kernel("call f;"), ErrorCode::kUnsupported, "recursion");
  GlobalMemory memory(1 << 20);
  const std::string twice =
      ".func h() { ret; }\n.func f() { call h; ret; }\n.func g() { call f; call h; ret; }\n";
  CHECK(LoadedModule::load(kHead + twice + kernel("call f; call g; call f;"), memory) != nullptr);
}

TEST_CASE("arguments have the size of the parameters") {
  const std::string function = ".func f(.param .b8 p[64]) { ret; }\n";
  check_refused(function + kernel("{ .param .b32 a; call f, (a); }"), ErrorCode::kParse, "size");
}

TEST_CASE("a guard is a predicate") {
  check_refused(kernel(".reg .b32 %r1;\n@%r1 ret;"), ErrorCode::kParse, "%r1 has 32 bits");
}

TEST_CASE("a thread has no more local memory than on a GPU") {
  check_refused(kernel(".local .b8 a[300000];\n.local .b8 b[300000];"), ErrorCode::kUnsupported,
                "local memory");
}

TEST_CASE("a kernel whose analysis would fill the memory is refused") {
  std::string text = ".reg .b32 a<99999>;\n";
  for (int i = 0; i < 25000; ++i) text += "mov.b32 a1, 0;\n";
  check_refused(kernel(text), ErrorCode::kUnsupported, "too many");
}

}  // namespace
}  // namespace annulus::sim
