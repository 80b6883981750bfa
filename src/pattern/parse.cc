#include "pattern/parse.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <numeric>
#include <vector>

#include "base/fail.h"
#include "pattern/node.h"

namespace annulus::pattern {
namespace {

constexpr std::array kKnown = {"dense",  "causal", "window",    "sink",
                               "prefix", "global", "documents", "blocks"};
// Words of the language that this version does not evaluate: an honest refusal, not a typing error.
constexpr std::array kLater = {
    "dilated", "block_dilated",  "strided",      "random", "segment",   "axial",
    "natten",  "vertical_slash", "hierarchical", "topk",   "heads",     "sum",
    "scale",   "softcap",        "alibi",        "bias",   "sink_logit"};

// Insertions, deletions and replacements that lead from a to b.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

// " ; did you mean 'causal'?" where a known word is near, else the list of known words.
std::string advice(std::string_view name) {
  const char* nearest = nullptr;
  std::size_t least = 3;  // two letters off are a typing error, three another word
  for (const char* known : kKnown) {
    if (name.size() > 32) break;
    const std::size_t distance = edit_distance(name, known);
    if (distance < least) {
      least = distance;
      nearest = known;
    }
  }
  if (nearest != nullptr) return fmt::format("did you mean '{}'?", nearest);
  return fmt::format("known are {}", fmt::join(kKnown, ", "));
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// For messages: unprintable bytes in hexadecimal.
std::string shown(char c) {
  return c >= ' ' && c <= '~' ? fmt::format("'{}'", c)
                              : fmt::format("byte 0x{:02x}", static_cast<unsigned char>(c));
}

// Recursive descent, one function per line of the grammar. Every level of recursion passes through
// deeper(), so hostile nesting ends in an error long before the stack does.
class Parser {
 public:
  Parser(std::string_view text, const LoadBlocks& load_blocks)
      : text_(text), load_blocks_(load_blocks) {}

  Pattern whole() {
    Pattern result = any_of();
    if (!at_end()) fail_at(at_, "unexpected {}; expected '&', '|' or the end", shown(text_[at_]));
    return result;
  }

 private:
  template <typename... Arguments>
  [[noreturn]] static void fail_at(std::size_t at, fmt::format_string<Arguments...> format,
                                   Arguments&&... arguments) {
    base::fail(ErrorCode::kParse, "column {}: {}", at + 1,
               fmt::format(format, std::forward<Arguments>(arguments)...));
  }

  // Runs what builds a node and puts the column before its error; a number that a leaf refuses is
  // an error of the text.
  template <typename Build>
  static Pattern built_at(std::size_t at, const Build& build) {
    try {
      return build();
    } catch (const Error& error) {
      const bool number = error.code() == ErrorCode::kInvalidArgument;
      base::fail(number ? ErrorCode::kParse : error.code(), "column {}: {}", at + 1, error.what());
    }
  }

  bool at_end() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r')) {
      ++at_;
    }
    return at_ == text_.size();
  }

  bool next_is(char c) { return !at_end() && text_[at_] == c; }

  bool accept(char c) {
    if (!next_is(c)) return false;
    ++at_;
    return true;
  }

  void expect(char c, std::string_view where) {
    if (accept(c)) return;
    if (at_end()) fail_at(at_, "expected '{}' {}, but the text ends", c, where);
    fail_at(at_, "expected '{}' {}, found {}", c, where, shown(text_[at_]));
  }

  // any_of = all_of { '|' all_of }
  Pattern any_of() {
    return chain('|', Kind::kOr, [this] { return all_of(); });
  }

  // all_of = factor { '&' factor }
  Pattern all_of() {
    return chain('&', Kind::kAnd, [this] { return factor(); });
  }

  template <typename Part>
  Pattern chain(char sign, Kind kind, const Part& part) {
    at_end();
    const std::size_t start = at_;
    const Pattern first = part();
    if (!next_is(sign)) return first;
    Node::Children nodes = {first.shared_node()};
    while (accept(sign)) nodes.push_back(part().shared_node());
    return built_at(start, [&] { return Pattern(combine(kind, nodes)); });
  }

  // factor = '~' factor | '(' any_of ')' | leaf
  Pattern factor() {
    at_end();
    const std::size_t start = at_;
    if (++depth_ > kMostDepth) fail_at(start, "nests deeper than {} levels", kMostDepth);
    Pattern result = [&] {
      if (accept('~')) {
        const Pattern inner = factor();
        return built_at(start, [&] { return ~inner; });
      }
      if (accept('(')) {
        const Pattern inner = any_of();
        expect(')', fmt::format("to close the '(' of column {}", start + 1));
        return inner;
      }
      return leaf();
    }();
    --depth_;
    return result;
  }

  std::string_view word() {
    if (at_end()) fail_at(at_, "expected a pattern, but the text ends");
    const std::size_t start = at_;
    if (!is_letter(text_[at_])) fail_at(at_, "expected a pattern, found {}", shown(text_[at_]));
    while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]))) ++at_;
    return text_.substr(start, at_ - start);
  }

  Pattern leaf() {
    const std::string_view name = word();
    const std::size_t start = at_ - name.size();
    if (std::find(kLater.begin(), kLater.end(), name) != kLater.end()) {
      base::fail(ErrorCode::kUnsupported, "column {}: '{}' is not known in this version", start + 1,
                 name);
    }
    if (name == "dense") return dense();
    if (name == "causal") return causal();
    if (std::find(kKnown.begin(), kKnown.end(), name) == kKnown.end()) {
      fail_at(start, "unknown name '{}'; {}", name.substr(0, 64), advice(name));
    }
    expect('(', fmt::format("after {}", name));
    const Pattern result = call(name, start);
    expect(')', fmt::format("to end {}", name));
    return result;
  }

  // The arguments of the leaves that have some.
  Pattern call(std::string_view name, std::size_t start) {
    if (name == "window") {
      const std::int64_t left = number();
      expect(',', "between the two numbers of window");
      const std::int64_t right = number();
      return built_at(start, [&] { return window(left, right); });
    }
    if (name == "blocks") {
      const std::string path = next_is(')') ? std::string() : quoted();
      return built_at(start, [&] { return load_blocks_(path); });
    }
    if (name == "documents" || (name == "global" && next_is('['))) {
      const std::vector<std::int64_t> values = list();
      const bool global_list = name == "global";
      return built_at(start, [&] {
        return global_list ? global(std::span(values)) : documents(std::span(values));
      });
    }
    const std::int64_t n = number();
    return built_at(start, [&] { return name == "global" ? global(n) : sink(n); });
  }

  std::int64_t number() {
    if (at_end()) fail_at(at_, "expected a number, but the text ends");
    const std::size_t start = at_;
    if (text_[at_] == '-') ++at_;
    const std::size_t digits = at_;
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    if (at_ == digits) {
      at_ = start;
      fail_at(start, "expected a whole number, found {}", shown(text_[start]));
    }
    if (at_ < text_.size() && (is_letter(text_[at_]) || text_[at_] == '.')) {
      fail_at(at_, "unexpected {} in a number; numbers are whole and decimal", shown(text_[at_]));
    }
    std::int64_t value = 0;
    const auto parsed = std::from_chars(text_.data() + start, text_.data() + at_, value);
    if (parsed.ec != std::errc()) {
      fail_at(start, "the number does not fit in 64 bits");
    }
    return value;
  }

  // '[' [ number { ',' number } ] ']'
  std::vector<std::int64_t> list() {
    expect('[', "to begin a list");
    std::vector<std::int64_t> values;
    if (accept(']')) return values;
    do {
      values.push_back(number());
    } while (accept(','));
    expect(']', "to end the list");
    return values;
  }

  // '"' { any byte, with \" and \\ for these two } '"'
  std::string quoted() {
    expect('"', "to begin a file name");
    const std::size_t start = at_ - 1;
    std::string result;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (text_[at_] == '\0') fail_at(at_, "a file name cannot hold a zero byte");
      if (text_[at_] == '\\') {
        ++at_;
        if (at_ == text_.size() || (text_[at_] != '"' && text_[at_] != '\\')) {
          fail_at(at_ - 1, "only \\\" and \\\\ are known after a backslash");
        }
      }
      result.push_back(text_[at_++]);
    }
    if (at_ == text_.size()) fail_at(start, "the file name has no closing '\"'");
    ++at_;
    if (result.empty()) fail_at(start, "the file name is empty");
    if (result[0] == '#') {
      fail_at(start, "'{}' names a layout that was never in a file; save it and name the file",
              result.substr(0, 64));
    }
    return result;
  }

  std::string_view text_;
  const LoadBlocks& load_blocks_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Pattern parse(std::string_view text, const LoadBlocks& load_blocks) {
  if (text.size() > kMostText) {
    base::fail(ErrorCode::kParse, "the expression has {} bytes, at most {} are read", text.size(),
               kMostText);
  }
  return Parser(text, load_blocks).whole();
}

}  // namespace annulus::pattern

namespace annulus::inline v0 {

Pattern Pattern::parse(std::string_view text) { return parse(text, nullptr); }

Pattern Pattern::parse(std::string_view text, std::shared_ptr<const BlockLayout> layout) {
  const Pattern given = layout == nullptr ? Pattern() : blocks(layout);
  bool used = false;
  Pattern whole = pattern::parse(text, [&](const std::string& path) {
    if (!path.empty()) return blocks(path);
    if (layout == nullptr) {
      base::fail(ErrorCode::kInvalidArgument,
                 "blocks() is the layout given beside the text, but there is none; give one, or "
                 "name a file: blocks(\"file\")");
    }
    used = true;
    return given;
  });
  if (layout != nullptr && !used) {
    base::fail(ErrorCode::kInvalidArgument,
               "a layout is given beside '{}', which does not use it; write blocks() where it "
               "belongs",
               text.substr(0, 64));
  }
  return whole;
}

}  // namespace annulus::inline v0
