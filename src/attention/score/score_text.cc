// Parses scores from text, and writes them as text that parses to the same score.
#include "annulus/score.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <set>
#include <utility>

#include "attention/score/score_node.h"
#include "base/fail.h"
#include "base/join.h"
#include "pattern/words.h"

namespace annulus {
namespace attention {
namespace {

constexpr std::string_view kScoreWords[] = {"scale", "softcap",    "alibi",
                                            "bias",  "sink_logit", "score_mod"};

class ScoreParser {
 public:
  explicit ScoreParser(std::string_view text) : text_(text) {}

  Score whole() {
    if (at_end()) return std::move(score_);
    do {
      term();
    } while (accept(','));
    if (!at_end()) fail("expected ',' or the end of the score");
    return std::move(score_);
  }

 private:
  [[noreturn]] void fail(std::string_view what) const { fail_at(at_, what); }
  [[noreturn]] static void fail_at(std::size_t at, std::string_view what) {
    base::fail(ErrorCode::kParse, "column {}: {}", at + 1, what);
  }

  bool at_end() {
    while (at_ < text_.size() && std::string_view(" \t\n\r").find(text_[at_]) != text_.npos) ++at_;
    return at_ == text_.size();
  }
  bool next_is(char c) { return !at_end() && text_[at_] == c; }
  bool accept(char c) {
    if (!next_is(c)) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(fmt::format("expected '{}'", c));
  }

  // name "(" value ")", in which each name may occur once. A score expression is parsed in place,
  // so that its commas and parentheses are its own.
  void term() {
    at_end();
    const std::size_t start = at_;
    while (at_ < text_.size() && ((text_[at_] >= 'a' && text_[at_] <= 'z') || text_[at_] == '_')) {
      ++at_;
    }
    const std::string_view name = text_.substr(start, at_ - start);
    if (name.empty()) fail_at(start, "expected a score, for example softcap(30)");
    if (std::find(std::begin(kScoreWords), std::end(kScoreWords), name) == std::end(kScoreWords)) {
      fail_at(start, fmt::format("unknown score '{}'; {}", name.substr(0, 64),
                                 pattern::advice(name, kScoreWords)));
    }
    if (!seen_.insert(name).second) fail_at(start, fmt::format("{} is given twice", name));
    expect('(');
    if (name == "scale") {
      score_.scale = number();
    } else if (name == "softcap") {
      score_.softcap = number();
    } else if (name == "alibi") {
      score_.alibi = list();
    } else if (name == "score_mod") {
      score_.score_mod = ScoreExpression(parse_score_expression(text_, &at_));
    } else if (name == "sink_logit") {
      score_.sink_logit = next_is('[') ? list() : std::vector<double>{number()};
    } else {
      do {
        score_.bias.push_back(list());
      } while (accept(','));
    }
    expect(')');
  }

  double number() {
    at_end();
    double value = 0;
    const char* const begin = text_.data() + at_;
    const auto parsed = std::from_chars(begin, text_.data() + text_.size(), value);
    if (parsed.ec == std::errc::invalid_argument) fail("expected a number");
    if (parsed.ec != std::errc()) fail("the number does not fit in a double");
    at_ += static_cast<std::size_t>(parsed.ptr - begin);
    return value;
  }

  std::vector<double> list() {
    expect('[');
    std::vector<double> values;
    do {
      values.push_back(number());
    } while (accept(','));
    expect(']');
    return values;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::set<std::string_view> seen_;
  Score score_;
};

std::string text_of(const std::vector<double>& values) {
  return fmt::format("[{}]", base::join(values, ", "));
}

}  // namespace
}  // namespace attention

inline namespace v0 {

Score Score::parse(std::string_view text) {
  if (text.size() > attention::kMaxScoreText) {
    base::fail(ErrorCode::kParse, "the score has {} bytes, at most {} are read", text.size(),
               attention::kMaxScoreText);
  }
  return attention::ScoreParser(text).whole();
}

std::string Score::to_string() const {
  std::vector<std::string> terms;
  if (scale) terms.push_back(fmt::format("scale({})", *scale));
  if (softcap != 0) terms.push_back(fmt::format("softcap({})", softcap));
  if (!alibi.empty()) terms.push_back(fmt::format("alibi({})", attention::text_of(alibi)));
  if (!bias.empty()) {
    std::vector<std::string> tables;
    for (const std::vector<double>& table : bias) tables.push_back(attention::text_of(table));
    terms.push_back(fmt::format("bias({})", base::join(tables, ", ")));
  }
  if (sink_logit.size() == 1) {
    terms.push_back(fmt::format("sink_logit({})", sink_logit[0]));
  } else if (!sink_logit.empty()) {
    terms.push_back(fmt::format("sink_logit({})", attention::text_of(sink_logit)));
  }
  if (score_mod) terms.push_back(fmt::format("score_mod({})", score_mod->to_string()));
  return fmt::format("{}", base::join(terms, ", "));
}

}  // namespace v0
}  // namespace annulus
