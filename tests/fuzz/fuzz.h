#ifndef ANNULUS_TESTS_FUZZ_FUZZ_H_
#define ANNULUS_TESTS_FUZZ_FUZZ_H_

// Functions that the fuzz targets share. A target is one function, LLVMFuzzerTestOneInput.
// libFuzzer calls it with inputs that it makes (-DANNULUS_FUZZ=ON), and replay.cc calls it with the
// inputs of a corpus.
//
// For any bytes, an execution must end with a right result, or with annulus::Error of a code other
// than kInternal. Everything else (another exception, a wrong result, an unaligned read) ends the
// process, so that libFuzzer notices it.

#include <fmt/core.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "annulus/types.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
// Called once before the first input, if a target defines it.
extern "C" __attribute__((weak)) int LLVMFuzzerInitialize(int* argc, char*** argv);

namespace annulus::fuzz {

// Ends the process with a line that names the broken rule and the values.
template <typename... Arguments>
[[noreturn]] void wrong(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  const std::string text = fmt::format(format, std::forward<Arguments>(arguments)...);
  std::fprintf(stderr, "WRONG %s\n", text.c_str());
  std::abort();
}

// Runs an action that may refuse its input. Returns the code of its Error, or nothing. A defect of
// the library, or an Error without a text, is reported as wrong.
template <typename Action>
std::optional<ErrorCode> refusal_of(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInternal) wrong("internal error: {}", error.what());
    if (error.what()[0] == '\0') wrong("an error without a message");
    return error.code();
  }
  return std::nullopt;
}

// Numbers taken from the front of an input. They are 0 when the input is used up.
class Bytes {
 public:
  Bytes(const std::uint8_t* data, std::size_t size)
      : rest_(reinterpret_cast<const char*>(data), size) {}
  explicit Bytes(std::string_view text) : rest_(text) {}

  bool empty() const { return rest_.empty(); }
  std::string_view rest() const { return rest_; }

  std::uint8_t byte() {
    if (rest_.empty()) return 0;
    const auto value = static_cast<std::uint8_t>(rest_[0]);
    rest_.remove_prefix(1);
    return value;
  }
  // Requires: 0 < count <= 256.
  std::int64_t below(std::int64_t count) { return byte() % count; }
  std::int64_t between(std::int64_t low, std::int64_t high) { return low + below(high - low + 1); }
  std::uint64_t word() {
    std::uint64_t value = 0;
    for (int i = 0; i < 8; ++i) value = value << 8 | byte();
    return value;
  }
  // Returns mostly a small number, sometimes a number at a limit or at the edge of a type, and
  // sometimes any number.
  std::int64_t number() {
    static constexpr std::int64_t kEdges[] = {INT64_MIN,
                                              INT64_MIN + 1,
                                              -(1ll << 62),
                                              -(1ll << 60) - 1,
                                              -(1ll << 60),
                                              -(1ll << 48) - 1,
                                              -(1ll << 48),
                                              -(1ll << 31),
                                              -(1ll << 30) - 1,
                                              -(1ll << 30),
                                              -65536,
                                              256,
                                              1024,
                                              65535,
                                              65536,
                                              65537,
                                              (1ll << 30) - 1,
                                              1ll << 30,
                                              (1ll << 30) + 1,
                                              (1ll << 31) - 1,
                                              1ll << 31,
                                              1ll << 32,
                                              1ll << 48,
                                              (1ll << 48) + 1,
                                              (1ll << 60) - 1,
                                              1ll << 60,
                                              (1ll << 60) + 1,
                                              1ll << 62,
                                              INT64_MAX - 1,
                                              INT64_MAX};
    const std::uint8_t kind = byte();
    if (kind < 192) return static_cast<std::int64_t>(kind) - 64;
    if (kind < 252) return kEdges[(kind - 192u) % std::size(kEdges)];
    return static_cast<std::int64_t>(word());
  }

 private:
  std::string_view rest_;
};

}  // namespace annulus::fuzz

#endif  // ANNULUS_TESTS_FUZZ_FUZZ_H_
