// Scores and score expressions. An input is text up to the first zero byte. If its first byte is
// above 127, the bytes are choices from which a grammar makes an expression. The bytes after it are
// the points at which the expression is evaluated.
//
// Text that parses must print as text that parses to the same expression. The text from which a
// kernel is compiled, with its numbers in place of their slots, must have the values of the
// expression.

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "annulus/problem.h"
#include "attention/score/score.h"
#include "attention/score/score_code.h"
#include "attention/score/score_node.h"
#include "fuzz/fuzz.h"

namespace annulus::fuzz {
namespace {

using attention::ScoreCode;
using attention::ScorePoint;

// Makes expressions with valid types, by the grammar of docs/patterns.md.
class Grammar {
 public:
  explicit Grammar(Bytes* bytes) : bytes_(*bytes) {}

  std::string number(int depth) {
    const std::int64_t kind = bytes_.below(24);
    if (depth == 0 || kind < 4) return bytes_.below(2) == 0 ? "score" : real();
    const auto in = [&] { return bytes_.below(2) == 0 ? number(depth - 1) : whole(depth - 1); };
    static constexpr const char* kFunctions[] = {"abs", "floor", "sqrt", "exp",    "exp2",
                                                 "log", "log2",  "tanh", "sigmoid"};
    if (kind < 13) return std::string(kFunctions[kind - 4]) + "(" + in() + ")";
    switch (kind) {
      case 13:
        return "-(" + number(depth - 1) + ")";
      case 14:
        return "min(" + number(depth - 1) + ", " + in() + ")";
      case 15:
        return "max(" + in() + ", " + number(depth - 1) + ")";
      case 16:
        return "where(" + truth(depth - 1) + ", " + number(depth - 1) + ", " + in() + ")";
      case 17:
        return "table(" + row(true) + ", " + whole(depth - 1) + ")";
      case 18:
        return pairs(true, depth);
      case 19:
        return "(" + in() + " / " + in() + ")";
      case 20:
        return "(" + number(depth - 1) + " - " + in() + ")";
      case 21:
        return in() + " * " + number(depth - 1);
      default:
        return number(depth - 1) + " + " + in();
    }
  }

 private:
  std::string whole(int depth) {
    const std::int64_t kind = bytes_.below(16);
    static constexpr const char* kNames[] = {"q", "k", "h", "b"};
    if (depth == 0 || kind < 4) return kNames[kind % 4];
    const auto in = [&] { return whole(depth - 1); };
    switch (kind) {
      case 4:
      case 5:
        return std::to_string(static_cast<std::int32_t>(bytes_.number()));
      case 6:
        return "div(" + in() + ", " + in() + ")";
      case 7:
        return "mod(" + in() + ", " + in() + ")";
      case 8:
        return "min(" + in() + ", " + in() + ")";
      case 9:
        return "abs(" + in() + ")";
      case 10:
        return "where(" + truth(depth - 1) + ", " + in() + ", " + in() + ")";
      case 11:
        return "table(" + row(false) + ", " + in() + ")";
      case 12:
        return pairs(false, depth);
      case 13:
        return "(" + in() + " * " + in() + ")";
      case 14:
        return "(" + in() + " - " + in() + ")";
      default:
        return "-" + in();
    }
  }
  std::string truth(int depth) {
    static constexpr const char* kSigns[] = {" < ", " <= ", " > ", " >= ", " == ", " != "};
    const std::int64_t kind = bytes_.below(10);
    if (depth == 0 || kind < 6) {
      const int below = std::max(depth - 1, 0);
      const auto in = [&] { return bytes_.below(2) == 0 ? whole(below) : number(below); };
      return "(" + in() + kSigns[kind % 6] + in() + ")";
    }
    if (kind == 6) return "~" + truth(depth - 1);
    return "(" + truth(depth - 1) + (kind < 8 ? " & " : " | ") + truth(depth - 1) + ")";
  }
  std::string real() {
    const auto bits = static_cast<std::uint32_t>(bytes_.word() >> 32);
    const float value = bytes_.below(4) == 0 ? std::bit_cast<float>(bits)
                                             : static_cast<float>(static_cast<int>(bits % 257)) / 8;
    if (std::isnan(value)) return "-inf";
    const std::string text = fmt::format("{}", value);
    return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
  }
  std::string row(bool reals, std::int64_t count = 0) {
    if (count == 0) count = bytes_.between(1, 4);
    std::string text = "[";
    for (std::int64_t i = 0; i < count; ++i) {
      text += (i > 0 ? ", " : "") +
              (reals ? real() : std::to_string(static_cast<std::int32_t>(bytes_.number())));
    }
    return text + "]";
  }
  std::string pairs(bool reals, int depth) {
    const std::int64_t columns = bytes_.between(1, 3);
    std::string text = "table([" + row(reals, columns);
    for (std::int64_t i = bytes_.below(3); i > 0; --i) text += ", " + row(reals, columns);
    return text + "], " + whole(depth - 1) + ", " + whole(depth - 1) + ")";
  }

  Bytes& bytes_;
};

// Turns the text for a kernel into an expression of the language. Slots become their numbers, and
// tables become their values.
class Filled {
 public:
  explicit Filled(const ScoreCode& code) : code_(code) {}

  std::string text() {
    std::string result;
    const std::string_view text = code_.structure.text;
    while (at_ < text.size()) {
      if (text.substr(at_).starts_with("m.")) {
        result += call();
      } else {
        result += text[at_++];
      }
    }
    return result;
  }

 private:
  std::int32_t slot(std::size_t i) const {
    return i < code_.numbers.size() ? code_.numbers[i] : code_.words.at(i - code_.numbers.size());
  }
  static std::string real(std::int32_t bits) {
    const std::string text = fmt::format("{}", std::bit_cast<float>(bits));
    return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
  }
  std::size_t count() {
    std::size_t value = 0;
    while (code_.structure.text.at(at_) >= '0' && code_.structure.text[at_] <= '9') {
      value = value * 10 + static_cast<std::size_t>(code_.structure.text[at_++] - '0');
    }
    return value;
  }
  std::string call() {
    const std::string& text = code_.structure.text;
    const std::size_t open = text.find('(', at_);
    const std::string name = text.substr(at_, open - at_);
    at_ = open + 1;
    const std::size_t first = count();
    if (name == "m.integer" || name == "m.real") {
      ++at_;
      return name == "m.real" ? "(" + real(slot(first)) + ")"
                              : "(" + std::to_string(slot(first)) + ")";
    }
    // This is a look-up. The commas of its own level separate its indices.
    std::vector<std::string> indices;
    for (int depth = 0; text.at(at_) != ')' || depth > 0;) {
      if (depth == 0 && text.substr(at_).starts_with(", ")) {
        at_ += 2;
        indices.emplace_back();
      } else if (text.substr(at_).starts_with("m.")) {
        indices.back() += call();
      } else {
        depth += (text[at_] == '(') - (text[at_] == ')');
        indices.back() += text[at_++];
      }
    }
    ++at_;
    const bool two = indices.size() == 2;
    const std::int32_t rows = two ? slot(first + 1) : 1;
    const std::int32_t columns = slot(first + (two ? 2 : 1));
    std::string table = "table(";
    if (two) table += "[";
    for (std::int32_t row = 0; row < rows; ++row) {
      table += row > 0 ? ", [" : "[";
      for (std::int32_t column = 0; column < columns; ++column) {
        const auto place = static_cast<std::size_t>(slot(first) + row * columns + column);
        const std::int32_t word = code_.words.at(place);
        if (column > 0) table += ", ";
        table += name == "m.reals" ? real(word) : std::to_string(word);
      }
      table += "]";
    }
    if (two) table += "]";
    for (const std::string& index : indices) table += ", " + index;
    return table + ")";
  }

  const ScoreCode& code_;
  std::size_t at_ = 0;
};

void check_expression(const ScoreExpression& expression, Bytes& bytes) {
  const std::string printed = expression.to_string();
  if (!(ScoreExpression::parse(printed) == expression)) wrong("{} prints otherwise", printed);
  const ScoreCode code = attention::score_code(expression);
  if (attention::score_structure(expression).text != code.structure.text) {
    wrong("{}: the structure depends on the tables", printed);
  }
  const std::string filled = Filled(code).text();
  const ScoreExpression again = ScoreExpression::parse(filled);
  for (int i = 0; i < 4; ++i) {
    ScorePoint point;
    point.score =
        i == 3 ? std::bit_cast<double>(bytes.word()) : static_cast<double>(bytes.number()) / 16;
    point.b = bytes.below(4);
    point.h = bytes.below(9);
    point.q = std::clamp<std::int64_t>(bytes.number(), -kMaxPosition, kMaxPosition);
    point.k = std::clamp<std::int64_t>(bytes.number(), -kMaxPosition, kMaxPosition);
    const double value = evaluate(expression, point), other = evaluate(again, point);
    if (value == other || (std::isnan(value) && std::isnan(other))) continue;
    wrong("{} is {} and its text for a kernel, {}, is {}", printed, value, filled, other);
  }
}

void check_score(const Score& score, Bytes& bytes) {
  const std::string printed = score.to_string();
  if (!(Score::parse(printed) == score)) wrong("a score prints as {}", printed);
  Problem problem;
  problem.heads = problem.kv_heads = bytes.between(1, 6);
  problem.dim_qk = problem.dim_v = 64;
  problem.score = score;
  attention::check_score(problem);
  if (!std::isfinite(problem.effective_scale())) wrong("{} has no finite scale", printed);
  attention::score_tables(score);
  for (const std::int64_t distance : {bytes.number() % (2 * kMaxPosition), std::int64_t{0}}) {
    if (std::isnan(attention::position_terms(score, bytes.below(6), distance))) {
      wrong("{} makes a position NaN", printed);
    }
  }
  if (score.score_mod) check_expression(*score.score_mod, bytes);
}

}  // namespace
}  // namespace annulus::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace annulus::fuzz;
  using annulus::Score;
  using annulus::ScoreExpression;
  Bytes bytes(data, size);
  if (size > 0 && data[0] > 127) {
    bytes.byte();
    const std::string text = Grammar(&bytes).number(5);
    refusal_of([&] { check_expression(ScoreExpression::parse(text), bytes); });
    return 0;
  }
  const std::string_view all = bytes.rest();
  const std::string_view text = all.substr(0, all.find('\0'));
  const Bytes behind(all.substr(std::min(all.size(), text.size() + 1)));
  refusal_of([&, rest = behind]() mutable { check_score(Score::parse(text), rest); });
  refusal_of(
      [&, rest = behind]() mutable { check_expression(ScoreExpression::parse(text), rest); });
  return 0;
}
