#include <doctest/doctest.h>

#include <fmt/format.h>

#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "fuzz/pattern_grammar.h"
#include "pattern/classify.h"
#include "pattern/random_pattern.h"

namespace annulus::pattern {
namespace {

TEST_CASE("presets are as dense as they say, at three lengths") {
  for (const PresetInfo& info : presets()) {
    CAPTURE(info.name);
    for (int i = 0; i < 3; ++i) {
      const Extent extent = Extent::whole(kPresetLengths[i], kPresetLengths[i]);
      const double found = density(preset(info.name), extent, 12).value;
      // Three digits are stated.
      CHECK(fmt::format("{:.3g}", found) == fmt::format("{:.3g}", info.density[i]));
    }
  }
}

TEST_CASE("presets are expressions: they print, parse, and get sparser as the sequence grows") {
  std::set<std::string_view> names;
  for (const PresetInfo& info : presets()) {
    CAPTURE(info.name);
    CHECK(names.insert(info.name).second);
    const Pattern pattern = preset(info.name);
    CHECK(Pattern::parse(pattern.to_string()) == pattern);
    CHECK(Pattern::parse(fmt::format("preset({})", info.name)) == pattern);
    CHECK(info.density[0] > info.density[1]);
    CHECK(info.density[1] > info.density[2]);
    CHECK(info.density[2] < 0.08);
  }
  CHECK(sparsity(density(preset("hierarchical_ultra_sparse"), Extent::whole(65536, 65536))).value >=
        0.99);
  CHECK(test::code_of([] { preset("dense"); }) == ErrorCode::kInvalidArgument);
}

// A bar would end the cell of the table.
std::string in_table(std::string_view expression) {
  std::string text;
  for (const char c : expression) text += c == '|' ? "\\|" : std::string(1, c);
  return text;
}

TEST_CASE("the document's table of presets is the library's") {
  std::ifstream document(ANNULUS_PATTERNS_DOCUMENT);
  REQUIRE(document);
  std::vector<std::string> listed;
  bool inside = false;
  for (std::string line; std::getline(document, line);) {
    if (line.starts_with("## ")) inside = line == "## Presets";
    if (inside && line.starts_with("| `")) listed.push_back(line);
  }
  std::vector<std::string> rows;
  for (const PresetInfo& info : presets()) {
    rows.push_back(fmt::format("| `{}` | `{}` | {} | {} | {} |", info.name,
                               in_table(info.expression), info.density[0], info.density[1],
                               info.density[2]));
  }
  CHECK(fmt::format("{}", fmt::join(listed, "\n")) == fmt::format("{}", fmt::join(rows, "\n")));
}

TEST_CASE("the document's table of leaves is of the words that there are") {
  std::ifstream document(ANNULUS_PATTERNS_DOCUMENT);
  REQUIRE(document);
  std::set<std::string> listed;
  bool inside = false;
  for (std::string line; std::getline(document, line);) {
    if (line.starts_with("## ")) inside = line == "## Leaves";
    if (!inside || !line.starts_with("| `")) continue;
    // A row may list two words: `sink(n)`, `prefix(n)`.
    const std::string cell = line.substr(0, line.find(" | "));
    for (std::size_t at = cell.find('`'); at != std::string::npos; at = cell.find('`', at + 1)) {
      const std::size_t end = cell.find('`', at + 1);
      const std::string form = cell.substr(at + 1, end - at - 1);
      listed.insert(form.substr(0, form.find('(')));
      at = end;
    }
  }
  for (const PatternWord& word : pattern_words()) {
    CAPTURE(word.name);
    CHECK(word.form.starts_with(word.name));
    // These two words have separate sections.
    if (word.name == "sum" || word.name == "preset") continue;
    CHECK(listed.erase(std::string(word.name)) == 1);
  }
  CHECK(listed.empty());
}

// Adds the words of lower-case letters and underscores in a text.
void note_words(const std::string& text, std::set<std::string>* words) {
  constexpr const char* kLetters = "abcdefghijklmnopqrstuvwxyz_";
  for (std::size_t at = text.find_first_of(kLetters); at != text.npos;) {
    const std::size_t end = text.find_first_not_of(kLetters, at);
    words->insert(text.substr(at, end - at));
    at = text.find_first_of(kLetters, end);
  }
}

TEST_CASE("the dictionary of the fuzz target has every word, and its grammar makes every word") {
  std::set<std::string> listed, made;
  std::ifstream dictionary(ANNULUS_FUZZ_PATTERN_DICTIONARY);
  for (std::string line; std::getline(dictionary, line);) {
    if (line.starts_with('"')) note_words(line, &listed);
  }
  base::Random random(1);
  for (int i = 0; i < 1000; ++i) {
    std::string input(64, '\0');
    for (char& byte : input) byte = static_cast<char>(random.below(256));
    fuzz::Bytes bytes(input);
    note_words(fuzz::PatternGrammar(&bytes).pattern(), &made);
  }
  for (const PatternWord& word : pattern_words()) {
    CAPTURE(word.name);
    CHECK(listed.contains(std::string(word.name)));
    // prefix() is another name for sink(), and blocks() needs a layout.
    if (word.name == "prefix" || word.name == "blocks") continue;
    CHECK(made.contains(std::string(word.name)));
  }
}

}  // namespace
}  // namespace annulus::pattern
