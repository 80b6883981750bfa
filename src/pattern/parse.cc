#include "pattern/parse.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <vector>

#include "base/fail.h"
#include "pattern/node.h"
#include "pattern/words.h"

namespace annulus::pattern {
namespace {

using Numbers = std::array<std::int64_t, 3>;
struct NumberLeaf {
  std::string_view name;
  int count;
  Pattern (*make)(const Numbers&);
};
// The leaves whose arguments are numbers; global is here for global(n).
constexpr NumberLeaf kNumberLeaves[] = {
    {"window", 2, [](const Numbers& n) { return window(n[0], n[1]); }},
    {"sink", 1, [](const Numbers& n) { return sink(n[0]); }},
    {"prefix", 1, [](const Numbers& n) { return prefix(n[0]); }},
    {"global", 1, [](const Numbers& n) { return global(n[0]); }},
    {"dilated", 1, [](const Numbers& n) { return dilated(n[0]); }},
    {"block_dilated", 2, [](const Numbers& n) { return block_dilated(n[0], n[1]); }},
    {"strided", 3, [](const Numbers& n) { return strided(n[0], n[1], n[2]); }},
    {"random", 3, [](const Numbers& n) { return random(n[0], n[1], n[2]); }},
    {"segment", 2, [](const Numbers& n) { return segment(n[0], n[1]); }},
    {"axial", 2, [](const Numbers& n) { return axial(n[0], n[1]); }},
    {"natten", 3, [](const Numbers& n) { return natten(n[0], n[1], n[2]); }},
};

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
    if (is_later_word(name)) {
      base::fail(ErrorCode::kUnsupported, "column {}: '{}' is not known in this version", start + 1,
                 name);
    }
    if (name == "dense") return dense();
    if (name == "causal") return causal();
    if (!is_word(name)) {
      fail_at(start, "unknown name '{}'; {}", name.substr(0, 64), advice(name, kWords));
    }
    expect('(', fmt::format("after {}", name));
    const Pattern result = call(name, start);
    expect(')', fmt::format("to end {}", name));
    return result;
  }

  // The arguments of the leaves that have some.
  Pattern call(std::string_view name, std::size_t start) {
    if (name == "blocks") {
      const std::string path = next_is(')') ? std::string() : quoted();
      return built_at(start, [&] { return load_blocks_(path); });
    }
    if (name == "heads" || name == "sum") {
      std::vector<Pattern> patterns;
      do {
        patterns.push_back(any_of());
      } while (accept(','));
      return built_at(start, [&] { return name == "sum" ? sum(patterns) : heads(patterns); });
    }
    if (name == "preset") {
      const std::string_view which = word();
      return built_at(start, [&] { return preset(which); });
    }
    if (name == "hierarchical") {
      const std::vector<HierarchyLevel> all = levels();
      return built_at(start, [&] { return hierarchical(all); });
    }
    if (name == "vertical_slash") {
      const std::vector<std::int64_t> columns = list();
      expect(',', "between the two lists of vertical_slash");
      const std::vector<std::int64_t> slashes = list();
      return built_at(start, [&] { return vertical_slash(columns, slashes); });
    }
    if (name == "documents" || (name == "global" && next_is('['))) {
      const std::vector<std::int64_t> values = list();
      const bool global_list = name == "global";
      return built_at(start, [&] {
        return global_list ? global(std::span(values)) : documents(std::span(values));
      });
    }
    return of_numbers(name, start);
  }

  Pattern of_numbers(std::string_view name, std::size_t start) {
    const auto& leaf = *std::find_if(std::begin(kNumberLeaves), std::end(kNumberLeaves),
                                     [&](const NumberLeaf& each) { return each.name == name; });
    Numbers numbers{};
    for (int i = 0; i < leaf.count; ++i) {
      if (i > 0) expect(',', fmt::format("between the {} numbers of {}", leaf.count, name));
      numbers[static_cast<std::size_t>(i)] = number();
    }
    return built_at(start, [&] { return leaf.make(numbers); });
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

  // '[' '(' number ',' number ',' number ')' { ',' ... } ']'
  std::vector<HierarchyLevel> levels() {
    expect('[', "to begin the levels");
    std::vector<HierarchyLevel> all;
    if (accept(']')) return all;
    do {
      HierarchyLevel level;
      expect('(', "to begin a level: (stride, window, b)");
      level.stride = number();
      expect(',', "behind the stride of a level");
      level.window = number();
      expect(',', "behind the window of a level");
      level.block = number();
      expect(')', "to end the level");
      all.push_back(level);
    } while (accept(','));
    expect(']', "to end the levels");
    return all;
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
