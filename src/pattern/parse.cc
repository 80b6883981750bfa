#include "pattern/parse.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <vector>

#include "base/fail.h"
#include "base/work.h"
#include "pattern/leaves/arguments.h"
#include "pattern/node.h"
#include "pattern/words.h"

namespace annulus::pattern {
namespace {

// Words that are not leaves: Parser::joined reads the text between their parentheses.
constexpr PatternWord kJoiningWords[] = {
    {"heads", "heads(e, ...)", "head h sees what expression h sees, and so on in turn"},
    {"head_groups", "head_groups(n, e, ...)", "the same for groups of n heads"},
    {"batches", "batches(e, ...)", "the same for batches"},
    {"sum", "sum(e, ...)",
     "a key counts once for each expression that sees it; only as the whole pattern"},
    {"preset", "preset(name)", "a pattern that has a name"},
    {"hierarchical", "hierarchical([(s, w, b), ...])",
     "levels: every s-th block of b keys up to w blocks away; -1: any"},
};

const leaves::Word* leaf_word(std::string_view name) {
  const std::vector<leaves::Word>& words = leaves::all_words();
  const auto found =
      std::ranges::find_if(words, [&](const leaves::Word& word) { return word.name == name; });
  return found == words.end() ? nullptr : &*found;
}

// Advice about an unknown name: the name that was probably meant.
std::string advice_about(std::string_view name) {
  for (const PresetInfo& preset : presets()) {
    if (preset.name == name) return fmt::format("did you mean 'preset({})'?", name);
  }
  std::vector<std::string_view> known;
  for (const PatternWord& word : pattern_words()) known.push_back(word.name);
  return advice(word_of_others(name), known);
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// A character for messages, with unprintable bytes in hexadecimal.
std::string shown(char c) {
  return c >= ' ' && c <= '~' ? fmt::format("'{}'", c)
                              : fmt::format("byte 0x{:02x}", static_cast<unsigned char>(c));
}

// A recursive-descent parser with one function for each line of the grammar. Every level of
// recursion goes through deeper(), so deep nesting is an error long before the stack overflows.
class Parser final : public leaves::Arguments {
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

  // Runs a function that builds a node and adds the column in front of its error, because a number
  // that a leaf does not accept is an error of the text.
  template <typename Build>
  static Pattern built_at(std::size_t at, const Build& build) {
    try {
      return build();
    } catch (const Error& error) {
      const bool number = error.code() == ErrorCode::kInvalidArgument;
      base::fail(number ? ErrorCode::kParse : error.code(), "column {}: {}", at + 1, error.what());
    }
  }

  Pattern load_blocks(const std::string& path) override { return load_blocks_(path); }
  Pattern built(const std::function<Pattern()>& build) override {
    return built_at(leaf_start_, build);
  }

  bool at_end() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r')) {
      ++at_;
    }
    return at_ == text_.size();
  }

  bool next_is(char c) override { return !at_end() && text_[at_] == c; }

  bool accept(char c) {
    if (!next_is(c)) return false;
    ++at_;
    return true;
  }

  void expect(char c, std::string_view where) override {
    if (accept(c)) return;
    if (at_end()) fail_at(at_, "expected '{}' {}, but the text ends", c, where);
    fail_at(at_, "expected '{}' {}, found {}", c, where, shown(text_[at_]));
  }

  bool next_is_word(std::string_view word) override {
    if (at_end() || !text_.substr(at_).starts_with(word)) return false;
    const std::size_t end = at_ + word.size();
    return end == text_.size() || (!is_letter(text_[end]) && !is_digit(text_[end]));
  }

  void expect_word(std::string_view word, std::string_view where) override {
    if (!next_is_word(word)) {
      if (at_end()) fail_at(at_, "expected '{}' {}, but the text ends", word, where);
      fail_at(at_, "expected '{}' {}, found {}", word, where, shown(text_[at_]));
    }
    at_ += word.size();
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
    if (++depth_ > kMaxDepth) fail_at(start, "nests deeper than {} levels", kMaxDepth);
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
      base::fail(ErrorCode::kUnsupported, "column {}: '{}' is not supported in this version",
                 start + 1, name);
    }
    const leaves::Word* word_of_leaf = leaf_word(name);
    if (word_of_leaf == nullptr &&
        std::ranges::find(kJoiningWords, name, &PatternWord::name) == std::end(kJoiningWords)) {
      fail_at(start, "unknown name '{}'; {}", name.substr(0, 64), advice_about(name));
    }
    leaf_start_ = start;
    if (word_of_leaf != nullptr && word_of_leaf->is_bare) return word_of_leaf->parse(this);
    expect('(', fmt::format("after {}", name));
    const Pattern result =
        word_of_leaf != nullptr ? word_of_leaf->parse(this) : joined(name, start);
    expect(')', fmt::format("to end {}", name));
    return result;
  }

  // Reads the arguments of words that are not leaves.
  Pattern joined(std::string_view name, std::size_t start) {
    if (name == "preset") {
      const std::string_view which = word();
      return built_at(start, [&] { return preset(which); });
    }
    if (name == "hierarchical") {
      const std::vector<HierarchyLevel> all = levels();
      return built_at(start, [&] { return hierarchical(all); });
    }
    std::int64_t group = 1;
    if (name == "head_groups") {
      group = number();
      expect(',', "after the number of heads of a group");
    }
    std::vector<Pattern> patterns;
    do {
      patterns.push_back(any_of());
    } while (accept(','));
    return built_at(start, [&] {
      if (name == "sum") return sum(patterns);
      if (name == "batches") return batches(patterns);
      return name == "heads" ? heads(patterns) : head_groups(group, patterns);
    });
  }

  std::int64_t number() override {
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
  std::vector<std::int64_t> list() override {
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
      expect(',', "after the stride of a level");
      level.window = number();
      expect(',', "after the window of a level");
      level.block = number();
      expect(')', "to end the level");
      all.push_back(level);
    } while (accept(','));
    expect(']', "to end the levels");
    return all;
  }

  // '"' { any byte, but \" and \\ for these two } '"'
  std::string quoted() override {
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
      fail_at(start,
              "'{}' names a layout that was never in a file; save the layout and name the file",
              result.substr(0, 64));
    }
    return result;
  }

  std::string_view text_;
  const LoadBlocks& load_blocks_;
  std::size_t at_ = 0;
  std::size_t leaf_start_ = 0;  // the column of the leaf whose arguments are being read
  int depth_ = 0;
};

}  // namespace

Pattern parse(std::string_view text, const LoadBlocks& load_blocks) {
  if (text.size() > kMaxText) {
    base::fail(ErrorCode::kParse, "the expression has {} bytes, at most {} are read", text.size(),
               kMaxText);
  }
  const auto bytes = static_cast<std::int64_t>(text.size());
  base::expect(bytes, "the text of a pattern");
  base::charge(bytes);
  return Parser(text, load_blocks).whole();
}

}  // namespace annulus::pattern

namespace annulus::inline v0 {

std::span<const PatternWord> pattern_words() {
  static const std::vector<PatternWord> words = [] {
    std::vector<PatternWord> all;
    for (const pattern::leaves::Word& word : pattern::leaves::all_words()) {
      all.push_back({word.name, word.form, word.meaning});
    }
    all.insert(all.end(), std::begin(pattern::kJoiningWords), std::end(pattern::kJoiningWords));
    return all;
  }();
  return words;
}

namespace {

// The layout of a file that a text names.
Pattern named_blocks(const std::string& path, const ParseOptions& options) {
  if (!options.allow_files) {
    base::fail(ErrorCode::kInvalidArgument,
               "blocks(\"{}\") names a file, which the caller does not allow for this text "
               "(ParseOptions::allow_files); give the layout itself, for blocks()",
               path.substr(0, 64));
  }
  Pattern named = blocks(path);
  const BlockLayout& layout = *pattern::leaves::structure_of(named.node().leaf).layout;
  base::charge(std::ssize(layout.indices) + std::ssize(layout.indptr));
  return named;
}

}  // namespace

Pattern Pattern::parse(std::string_view text, const ParseOptions& options) {
  return parse(text, nullptr, options);
}

Pattern Pattern::parse(std::string_view text, std::shared_ptr<const BlockLayout> layout,
                       const ParseOptions& options) {
  const base::Work work(options.work, "parsing a pattern");
  const Pattern given = layout == nullptr ? Pattern() : blocks(layout);
  bool used = false;
  Pattern whole = pattern::parse(text, [&](const std::string& path) {
    if (!path.empty()) return named_blocks(path, options);
    if (layout == nullptr) {
      base::fail(ErrorCode::kInvalidArgument,
                 "blocks() is the layout given with the text, but there is none; give one, or "
                 "name a file: blocks(\"file\")");
    }
    used = true;
    return given;
  });
  if (layout != nullptr && !used) {
    base::fail(ErrorCode::kInvalidArgument,
               "a layout is given with '{}', which does not use it; write blocks() where it "
               "belongs",
               text.substr(0, 64));
  }
  return whole;
}

}  // namespace annulus::inline v0
