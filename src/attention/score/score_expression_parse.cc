// Score expressions from text: recursive descent, one function per line of the grammar in
// docs/patterns.md.
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "attention/score/score_node.h"
#include "base/fail.h"
#include "pattern/words.h"

namespace annulus {
namespace attention {
namespace {

class Parser {
 public:
  Parser(std::string_view text, std::size_t* at) : text_(text), at_(*at), end_(at) {}

  ScoreNodePointer expression() {
    ScoreNodePointer node = either();
    *end_ = at_;
    return node;
  }

 private:
  using Op = ScoreOperation;

  [[noreturn]] static void fail_at(std::size_t at, std::string_view what) {
    base::fail(ErrorCode::kParse, "column {}: {}", at + 1, what);
  }

  // Calls a function that makes a node, and adds the column to the error if the function throws.
  template <typename Make>
  static auto made_at(std::size_t at, const Make& make) {
    try {
      return make();
    } catch (const Error& error) {
      fail_at(at, error.what());
    }
  }

  // Deep nesting ends in an error long before the stack overflows. A level of a tree may be printed
  // as two levels of text, a prefix and a parenthesis.
  static constexpr int kMaxTextDepth = 2 * kMaxScoreDepth;
  template <typename Part>
  ScoreNodePointer deeper(const Part& part) {
    if (depth_ == kMaxTextDepth) {
      fail_at(at_, fmt::format("the expression nests more than {} levels deep", kMaxTextDepth));
    }
    ++depth_;
    ScoreNodePointer node = part();
    --depth_;
    return node;
  }

  bool at_end() {
    while (at_ < text_.size() && std::string_view(" \t\n\r").find(text_[at_]) != text_.npos) ++at_;
    return at_ == text_.size();
  }
  bool accept(std::string_view sign) {
    if (at_end() || !text_.substr(at_).starts_with(sign)) return false;
    at_ += sign.size();
    return true;
  }
  void expect(std::string_view sign) {
    if (!accept(sign)) fail_at(at_, fmt::format("expected '{}'", sign));
  }

  // Parses part { sign part }. All of the signs bind equally tightly.
  template <typename Part>
  ScoreNodePointer chain(ScoreStrength strength, const Part& part) {
    ScoreNodePointer left = part();
    for (;;) {
      at_end();
      const std::size_t start = at_;
      const auto sign = std::ranges::find_if(score_operations(), [&](const auto& info) {
        return info.strength == strength && info.operands == 2 && accept(info.sign);
      });
      if (sign == score_operations().end()) return left;
      const ScoreNodePointer right = part();
      left = made_at(start, [&] { return make_score_node(sign->operation, {left, right}); });
      at_end();
      if (strength == kComparison && at_ < text_.size() &&
          std::string_view("<>=!").find(text_[at_]) != text_.npos) {
        fail_at(at_, "comparisons do not chain; join them by '&'");
      }
    }
  }

  ScoreNodePointer either() {
    return chain(kOrs, [this] { return both(); });
  }
  ScoreNodePointer both() {
    return chain(kAnds, [this] { return comparison(); });
  }
  ScoreNodePointer comparison() {
    return chain(kComparison, [this] { return sum(); });
  }
  ScoreNodePointer sum() {
    return chain(kSum, [this] { return product(); });
  }
  ScoreNodePointer product() {
    return chain(kProduct, [this] { return factor(); });
  }

  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  }
  bool number_follows(std::size_t at) const {
    return at < text_.size() &&
           (is_digit(text_[at]) || text_[at] == '.' || text_.substr(at, 3) == "inf");
  }

  ScoreNodePointer factor() {
    at_end();
    const std::size_t start = at_;
    if (number_follows(at_)) return number();
    if (at_ < text_.size() && text_[at_] == '-' && number_follows(at_ + 1)) return number();
    for (const Op prefix : {Op::kNegate, Op::kNot}) {
      if (!accept(info_of(prefix).sign)) continue;
      const ScoreNodePointer operand = deeper([this] { return factor(); });
      return made_at(start, [&] { return make_score_node(prefix, {operand}); });
    }
    if (accept("(")) {
      const ScoreNodePointer inner = deeper([this] { return either(); });
      expect(")");
      return inner;
    }
    return named();
  }

  ScoreNodePointer named() {
    const std::size_t start = at_;
    while (at_ < text_.size() && (is_letter(text_[at_]) || (at_ > start && is_digit(text_[at_])))) {
      ++at_;
    }
    const std::string_view name = text_.substr(start, at_ - start);
    if (name.empty()) fail_at(start, "expected a number, score, b, h, q, k or a function");
    if (name == "table") return lookup(start);
    const auto found = std::ranges::find_if(score_operations(), [&](const auto& info) {
      return info.strength == kAtom && info.sign == name;
    });
    if (found == score_operations().end()) {
      std::vector<std::string_view> known = {"table"};
      for (const ScoreOperationInfo& info : score_operations()) {
        if (info.strength == kAtom) known.push_back(info.sign);
      }
      fail_at(start,
              fmt::format("unknown '{}'; {}", name.substr(0, 64), pattern::advice(name, known)));
    }
    std::vector<ScoreNodePointer> operands;
    for (int i = 0; i < found->operands; ++i) {
      expect(i == 0 ? "(" : ",");
      operands.push_back(deeper([this] { return either(); }));
    }
    if (found->operands > 0) expect(")");
    return made_at(start, [&] { return make_score_node(found->operation, std::move(operands)); });
  }

  // "table" "(" ( row | "[" row { "," row } "]" ) "," index [ "," index ] ")"
  ScoreNodePointer lookup(std::size_t start) {
    expect("(");
    const std::size_t table_start = at_;
    detail::ScoreTableData data;
    data.whole = true;
    expect("[");
    at_end();
    const bool rows = at_ < text_.size() && text_[at_] == '[';
    do {
      if (rows) expect("[");
      const std::size_t before = data.reals.size();
      do {
        entry(&data);
      } while (accept(","));
      const auto columns = static_cast<std::int64_t>(data.reals.size() - before);
      if (rows && data.columns != 0 && columns != data.columns) {
        fail_at(at_, fmt::format("a row of {} values after rows of {}", columns, data.columns));
      }
      if (rows) data.columns = columns;
      expect("]");
    } while (rows && accept(","));
    if (rows) expect("]");
    if (data.whole) {
      for (const double value : data.reals) {
        data.integers.push_back(static_cast<std::int32_t>(value));
      }
      data.reals.clear();
    }
    const auto table = made_at(table_start, [&] { return make_score_table(std::move(data)); });
    std::vector<ScoreNodePointer> indices;
    expect(",");
    do {
      indices.push_back(deeper([this] { return either(); }));
    } while (indices.size() < 2 && accept(","));
    expect(")");
    return made_at(start, [&] { return make_score_lookup(table, std::move(indices)); });
  }

  void entry(detail::ScoreTableData* data) {
    at_end();
    if (!number_follows(at_) && !(at_ < text_.size() && text_[at_] == '-')) {
      fail_at(at_, "expected a number");
    }
    const ScoreNodePointer value = number();
    data->whole = data->whole && value->type == ScoreNode::Type::kInteger;
    data->reals.push_back(value->type == ScoreNode::Type::kInteger
                              ? static_cast<double>(value->integer)
                              : value->real);
  }

  // A number without a point or an exponent is an integer, any other is real; "inf" is real too. A
  // minus sign belongs to the number.
  ScoreNodePointer number() {
    const std::size_t start = at_;
    std::size_t stop = at_ + (text_[at_] == '-');
    if (text_.substr(stop, 3) == "inf") {
      at_ = stop + 3;
      const double infinity = std::numeric_limits<double>::infinity();
      return make_score_real(text_[start] == '-' ? -infinity : infinity);
    }
    while (stop < text_.size() && is_digit(text_[stop])) ++stop;
    const char* const begin = text_.data() + start;
    const char* const end = text_.data() + text_.size();
    const bool real =
        stop < text_.size() && std::string_view(".eE").find(text_[stop]) != text_.npos;
    double value = 0;
    std::int64_t integer = 0;
    const auto parsed =
        real ? std::from_chars(begin, end, value) : std::from_chars(begin, end, integer);
    if (parsed.ec == std::errc::invalid_argument) fail_at(start, "expected a number");
    if (parsed.ec != std::errc()) {
      fail_at(start, real ? "the number does not fit in a double"
                          : "the number does not fit in 32 bits; with a point it is a real one");
    }
    at_ = start + static_cast<std::size_t>(parsed.ptr - begin);
    return made_at(start,
                   [&] { return real ? make_score_real(value) : make_score_integer(integer); });
  }

  std::string_view text_;
  std::size_t at_;
  std::size_t* end_;
  int depth_ = 0;
};

}  // namespace

ScoreNodePointer parse_score_expression(std::string_view text, std::size_t* at) {
  return Parser(text, at).expression();
}

}  // namespace attention

inline namespace v0 {

ScoreExpression ScoreExpression::parse(std::string_view text) {
  if (text.size() > attention::kMaxScoreText) {
    base::fail(ErrorCode::kParse, "the expression has {} bytes, at most {} are read", text.size(),
               attention::kMaxScoreText);
  }
  std::size_t at = 0;
  ScoreExpression expression(attention::parse_score_expression(text, &at));
  at = text.find_first_not_of(" \t\n\r", at);
  if (at != text.npos) {
    base::fail(ErrorCode::kParse, "column {}: expected a sign or the end of the expression",
               at + 1);
  }
  return expression;
}

}  // namespace v0
}  // namespace annulus
