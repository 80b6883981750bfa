#ifndef ANNULUS_TESTS_FUZZ_PATTERN_GRAMMAR_H_
#define ANNULUS_TESTS_FUZZ_PATTERN_GRAMMAR_H_

// Makes texts of patterns from the bytes of an input. Most of them parse, and all leaves except
// blocks() occur.

#include <string>

#include "annulus/pattern.h"
#include "fuzz/fuzz.h"

namespace annulus::fuzz {

// The grammar of docs/patterns.md. Each byte makes a choice.
class PatternGrammar {
 public:
  explicit PatternGrammar(Bytes* bytes) : bytes_(*bytes) {}

  std::string pattern() {
    if (bytes_.below(16) == 0) return "sum(" + several(3) + ")";
    return set(4);
  }

 private:
  std::string set(int depth) {
    const std::int64_t kind = bytes_.below(16);
    if (depth == 0 || kind < 7) return leaf();
    switch (kind) {
      case 7:
        return "~" + factor(depth);
      case 8:
        return "heads(" + several(depth) + ")";
      case 9:
        return "head_groups(" + number(1, 4) + ", " + several(depth) + ")";
      case 10:
        return "batches(" + several(depth) + ")";
      case 11:
      case 12:
        return factor(depth) + " | " + factor(depth);
      default:
        return factor(depth) + " & " + factor(depth);
    }
  }
  std::string factor(int depth) {
    return bytes_.below(2) == 0 ? leaf() : "(" + set(depth - 1) + ")";
  }
  std::string several(int depth) {
    std::string text = set(depth - 1);
    for (std::int64_t i = bytes_.below(4); i > 0; --i) text += ", " + set(depth - 1);
    return text;
  }
  // Usually a number in [low, high], sometimes any number.
  std::string number(std::int64_t low, std::int64_t high) {
    if (bytes_.below(16) == 0) return std::to_string(bytes_.number());
    return std::to_string(bytes_.between(low, high));
  }
  std::string list(bool ascends) {
    std::string text = "[";
    std::int64_t last = bytes_.between(-20, 20);
    for (std::int64_t i = bytes_.below(5); i > 0; --i) {
      text += (text.size() > 1 ? ", " : "") + std::to_string(last);
      last = ascends ? last + bytes_.between(1, 30) : bytes_.number();
    }
    return text + "]";
  }
  std::string call(const char* name, std::int64_t low, std::int64_t high, int arguments) {
    std::string text = std::string(name) + "(";
    for (int i = 0; i < arguments; ++i) text += (i ? ", " : "") + number(low, high);
    return text + ")";
  }
  std::string leaf() {
    switch (bytes_.below(24)) {
      case 0:
        return "dense";
      case 1:
      case 2:
        return "causal";
      case 3:
        return call("sink", 0, 20, 1);
      case 4:
        return call("dilated", 1, 9, 1);
      case 5:
      case 6:
        return call("window", -1, 40, 2);
      case 7:
        return "window(" + number(-40, 20) + ", " + number(-20, 40) + ")";
      case 8:
        return call("block_dilated", 1, 9, 2);
      case 9:
        return call("segment", 1, 20, 2);
      case 10:
        return call("axial", 1, 9, 2);
      case 11:
      case 12: {
        const std::int64_t a = bytes_.between(-40, 40);
        const std::int64_t b = a + bytes_.between(0, 40);
        const char* name = bytes_.below(2) == 0 ? "queries(" : "keys(";
        return name + std::to_string(a) + ", " + std::to_string(b) + ")";
      }
      case 13: {
        const std::int64_t s = bytes_.between(1, 12);
        return "every(" + std::to_string(s) + ", " + std::to_string(bytes_.below(s)) + ")";
      }
      case 14:
        return call("strided", 1, 6, 3);
      case 15:
        return "random(" + call("", 0, 6, 1).substr(1, 1) + ", " + number(0, 9) + ", " +
               number(1, 9) + ")";
      case 16:
        return "natten(" + number(1, 9) + ", " + number(1, 9) + ", " +
               std::to_string(2 * bytes_.below(4) + 1) + ")";
      case 17:
        return "global(" + (bytes_.below(2) == 0 ? number(0, 20) : list(false)) + ")";
      case 18:
        return "documents(" + list(bytes_.below(8) != 0) + ")";
      case 19:
        return "vertical_slash(" + list(false) + ", " + list(false) + ")";
      case 20: {
        std::string text = "hierarchical([";
        for (std::int64_t i = bytes_.below(3); i >= 0; --i) {
          text += call("", -1, 6, 3) + (i > 0 ? ", " : "");
        }
        return text + "])";
      }
      case 21:
        return "preset(" +
               std::string(presets()[static_cast<std::size_t>(
                                         bytes_.below(static_cast<std::int64_t>(presets().size())))]
                               .name) +
               ")";
      default:
        return call("window", 0, 12, 2);
    }
  }

  Bytes& bytes_;
};

}  // namespace annulus::fuzz

#endif  // ANNULUS_TESTS_FUZZ_PATTERN_GRAMMAR_H_
