#ifndef ANNULUS_PATTERN_LEAVES_ARGUMENTS_H_
#define ANNULUS_PATTERN_LEAVES_ARGUMENTS_H_

// The arguments of a leaf. The parser implements this class: it reads the numbers and lists between
// the parentheses of the leaf.

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "annulus/pattern.h"

namespace annulus::pattern::leaves {

// All functions throw Error{kParse} with the column.
class Arguments {
 public:
  virtual ~Arguments() = default;
  virtual bool next_is(char c) = 0;
  virtual void expect(char c, std::string_view where) = 0;
  virtual std::int64_t number() = 0;
  virtual std::vector<std::int64_t> list() = 0;  // reads a list in brackets
  virtual std::string quoted() = 0;              // reads a file name in quotes
  virtual bool next_is_word(std::string_view word) = 0;
  virtual void expect_word(std::string_view word, std::string_view where) = 0;
  // The layout of a file. With an empty path, the layout that was given together with the text.
  virtual Pattern load_blocks(const std::string& path) = 0;
  // Runs a function that builds the leaf, and adds the column of the leaf's word in front of its
  // error.
  virtual Pattern built(const std::function<Pattern()>& build) = 0;

  // Reads kCount numbers, separated by commas.
  template <std::size_t kCount>
  std::array<std::int64_t, kCount> numbers(std::string_view word) {
    std::array<std::int64_t, kCount> all{};
    for (std::size_t i = 0; i < kCount; ++i) {
      if (i > 0) {
        expect(',', "between the " + std::to_string(kCount) + " numbers of " + std::string(word));
      }
      all[i] = number();
    }
    return all;
  }
};

}  // namespace annulus::pattern::leaves

#endif  // ANNULUS_PATTERN_LEAVES_ARGUMENTS_H_
