#ifndef ANNULUS_TESTS_FAULTS_OPTIONS_H_
#define ANNULUS_TESTS_FAULTS_OPTIONS_H_

// The options of a campaign's program, as pairs of a name and a value. A campaign takes hours, so a
// wrong command line is rejected before it begins.

#include <charconv>
#include <concepts>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace annulus::test {

struct ProgramOption {
  const char* name;                            // "--seed"
  std::function<bool(std::string_view)> take;  // returns false if the value is not valid
};

// Options that store a text, append a text to a list, or store an integer or a real number.
inline ProgramOption option(const char* name, std::string* text) {
  return {name, [=](std::string_view value) { return *text = value, true; }};
}
inline ProgramOption option(const char* name, std::vector<std::string>* texts) {
  return {name, [=](std::string_view value) { return texts->emplace_back(value), true; }};
}
template <typename T>
requires std::integral<T> || std::floating_point<T> ProgramOption option(const char* name,
                                                                         T* number, int base = 10) {
  return {name, [=](std::string_view value) {
            const char* const end = value.data() + value.size();
            std::from_chars_result read{};
            if constexpr (std::integral<T>) {
              read = std::from_chars(value.data(), end, *number, base);
            } else {
              read = std::from_chars(value.data(), end, *number);
            }
            return read.ec == std::errc() && read.ptr == end;
          }};
}

// Ends the process with 2 if an argument is not one of `options`, or if its value has the wrong
// type.
inline void read_options(int argc, char** argv, const std::vector<ProgramOption>& options,
                         int first = 1) {
  const auto refuse = [&](const char* argument, const char* why) {
    std::fprintf(stderr, "%s: '%s' %s; the options, each with a value, are", argv[0], argument,
                 why);
    for (const ProgramOption& each : options) std::fprintf(stderr, " %s", each.name);
    std::fprintf(stderr, "\n");
    std::exit(2);
  };
  for (int i = first; i < argc; i += 2) {
    const ProgramOption* found = nullptr;
    for (const ProgramOption& each : options) {
      if (std::strcmp(each.name, argv[i]) == 0) found = &each;
    }
    if (found == nullptr) refuse(argv[i], "is no option");
    if (i + 1 == argc) refuse(argv[i], "lacks its value");
    if (!found->take(argv[i + 1])) refuse(argv[i + 1], "is no such value");
  }
}

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_FAULTS_OPTIONS_H_
