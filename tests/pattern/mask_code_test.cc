#include "pattern/mask_code.h"

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <cctype>
#include <functional>
#include <numeric>

#include "pattern/node.h"
#include "pattern/random_pattern.h"

// The device's own functions are compiled for the host. They intentionally join bools without
// branches.
#ifdef __clang__
#pragma clang diagnostic ignored "-Wbitwise-instead-of-logical"
#endif
#define __device__
#define __forceinline__ inline
#include "support/options.h"
#include "tile/mask.cuh"
#include "tile/range_mask.cuh"

namespace annulus::pattern {
namespace {

using base::Random;
using test::between;
using test::code_of;
using test::random_pattern;

constexpr int kColumns = 32;
using Context = tile::MaskContext<kColumns>;

// Evaluates the text of a MaskCode with the precedence of C++, and calls the real functions.
class Reader {
 public:
  Reader(const std::string& text, const Context& context, int q, int k)
      : text_(text), context_(context), q_(q), k_(k) {}

  bool whole() {
    const bool value = any();
    REQUIRE(at_ == text_.size());
    return value;
  }

 private:
  bool accept(const std::string& word) {
    if (text_.compare(at_, word.size(), word) != 0) return false;
    at_ += word.size();
    return true;
  }
  bool any() {
    bool value = all();
    while (accept(" | ")) value = all() | value;
    return value;
  }
  bool all() {
    bool value = one();
    while (accept(" & ")) value = one() & value;
    return value;
  }
  bool one() {
    if (accept("!")) return !one();
    if (accept("true")) return true;
    if (accept("false")) return false;
    if (accept("(")) {
      const bool value = is_turn() ? choice() : any();
      REQUIRE(accept(")"));
      return value;
    }
    for (const char* word : {"one_of", "all_of", "any_of"}) {
      if (accept(std::string("m.") + word + "(")) return shared(word);
    }
    REQUIRE(accept("m."));
    const std::size_t open = text_.find('(', at_);
    const std::string name = text_.substr(at_, open - at_);
    at_ = open + 1;
    slots_.clear();
    while (is_digit()) {
      slots_.push_back(number());
      REQUIRE(accept(", "));
    }
    REQUIRE(accept("q, k)"));
    return leaf(name);
  }
  // Reads the rest of m.all_of(table, width, count, [&](const auto& m) { return text; }), and of
  // the similar functions.
  bool shared(const std::string& word) {
    const int table = number();
    REQUIRE(accept(", "));
    const int width = number();
    REQUIRE(accept(", "));
    const int row = word == "one_of" ? turn() : number();
    REQUIRE(accept(", [&](const auto& m) { return "));
    const std::size_t begin = at_;
    for (int open = 1; open > 0; ++at_) {
      REQUIRE(at_ < text_.size());
      open += (text_[at_] == '{') - (text_[at_] == '}');
    }
    const std::string text = text_.substr(begin, at_ - begin - std::string("; }").size());
    REQUIRE(accept(")"));
    const auto of_row = [&](const Context& context) {
      return Reader(text, context, q_, k_).whole();
    };
    if (word == "one_of") return context_.one_of(table, width, row, of_row);
    return word == "all_of" ? context_.all_of(table, width, row, of_row)
                            : context_.any_of(table, width, row, of_row);
  }
  // Reads m.turn(n), m.group(slot, n) or m.batch_turn(n).
  int turn() {
    const bool grouped = accept("m.group(");
    const bool of_batch = !grouped && accept("m.batch_turn(");
    if (!grouped && !of_batch) REQUIRE(accept("m.turn("));
    const int slot = grouped ? number() : 0;
    if (grouped) REQUIRE(accept(", "));
    const int count = number();
    REQUIRE(accept(")"));
    return grouped    ? context_.group(slot, count)
           : of_batch ? context_.batch_turn(count)
                      : context_.turn(count);
  }
  bool is_turn() const {
    return text_.compare(at_, 7, "m.turn(") == 0 || text_.compare(at_, 8, "m.group(") == 0 ||
           text_.compare(at_, 13, "m.batch_turn(") == 0;
  }
  // Reads m.turn(n) == i ? this : the rest.
  bool choice() {
    if (!is_turn()) return one();
    const int turn_of = turn();
    REQUIRE(accept(" == "));
    const int wanted = number();
    REQUIRE(accept(" ? "));
    const bool value = one();
    REQUIRE(accept(" : "));
    const bool rest = choice();
    return turn_of == wanted ? value : rest;
  }
  bool is_digit() const { return std::isdigit(static_cast<unsigned char>(text_[at_])) != 0; }
  int number() {
    REQUIRE(is_digit());
    int value = 0;
    while (is_digit()) value = value * 10 + (text_[at_++] - '0');
    return value;
  }

  template <typename... Slots>
  bool call(bool (Context::*function)(Slots...) const) {
    constexpr std::size_t kSlots = sizeof...(Slots) - 2;
    REQUIRE(slots_.size() == kSlots);
    return [&]<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
      return (context_.*function)(slots_[kIndex]..., q_, k_);
    }
    (std::make_index_sequence<kSlots>());
  }
  bool leaf(const std::string& name) {
#define ANNULUS_COMPARED_LEAF(leaf, slots) \
  if (name == #leaf) return call(&Context::leaf);
#define ANNULUS_SEARCHED_LEAF(leaf, slots) ANNULUS_COMPARED_LEAF(leaf, slots)
#include "params/mask_leaves_params.h"
#undef ANNULUS_COMPARED_LEAF
#undef ANNULUS_SEARCHED_LEAF
    FAIL("unknown function " << name);
    return false;
  }

  std::vector<int> slots_;
  const std::string& text_;
  const Context& context_;
  int q_, k_;
  std::size_t at_ = 0;
};

kernels::MaskParams params_of(const MaskCode& code) {
  kernels::MaskParams params{};
  params.lists = code.lists.data();
  REQUIRE(code.numbers.size() <= static_cast<std::size_t>(kernels::kMaskNumbers));
  std::copy(code.numbers.begin(), code.numbers.end(), params.numbers);
  return params;
}

constexpr std::int64_t kHeads = 4;
const MaskScope kScope = {kHeads, {-80, 181}, {.seq_k = 150, .layer = 3}};

MaskCode emit_all(const Pattern& pattern) {
  return emit(pattern, static_cast<std::size_t>(kernels::kMaskNumbers), kScope);
}

// Compares random pairs. The code must give the same result for every head.
void check_pairs(const Pattern& pattern, const MaskCode& code, int draws, Random* random) {
  const kernels::MaskParams params = params_of(code);
  for (int draw = 0; draw < draws; ++draw) {
    const auto head = static_cast<int>(random->below(kHeads));
    const auto q = static_cast<int>(between(random, -80, 180));
    const auto k = static_cast<int>(between(random, -80, 180));
    const int batch = draw % 7;
    const Context context{params, nullptr, 0, 0, 0, 0, 0, head, batch};
    PatternContext of_batch = kScope.context;
    of_batch.batch = batch;
    if (Reader(code.text, context, q, k).whole() != pattern.visible(head, q, k, of_batch)) {
      FAIL(pattern.to_string() << " batch " << batch << " head " << head << " q " << q << " k " << k
                               << ": " << code.text);
    }
  }
}

TEST_CASE("random trees as code agree with their elements") {
  Random random(test::seed_of(31));
  for (int i = 0; i < 1500; ++i) {
    const Pattern pattern = random_pattern(&random, 1 + static_cast<int>(random.below(6)), nullptr);
    const MaskCode code = emit_all(pattern);
    CHECK_FALSE(code.uses_blocks);
    check_pairs(pattern, code, 60, &random);
  }
}

TEST_CASE("code of batches that differ asks for the batch") {
  Random random(test::seed_of(33));
  const auto inner = [&] { return random_pattern(&random, 3, nullptr); };
  for (int i = 0; i < 300; ++i) {
    const Pattern turns =
        batches({heads({inner(), inner()}), inner(), batches({inner(), inner(), inner()})});
    const Pattern pattern = i % 2 == 0 ? turns : heads({turns & inner(), ~turns, inner()});
    check_pairs(pattern, emit_all(pattern), 60, &random);
  }
}

TEST_CASE("numbers beyond the parameter block continue in the lists") {
  Random random(test::seed_of(32));
  for (const int leaves : {16, 17, 40, 200}) {
    Pattern pattern = window(3, 5);
    for (int i = 1; i < leaves; ++i) {
      const std::int64_t width = between(&random, 0, 30);
      pattern =
          i % 5 == 0
              ? (pattern & ~global(std::span<const std::int64_t>(test::random_list(&random, 9))))
          : i % 2 == 0 ? (pattern & ~window(width, width / 2))
                       : (pattern | (window(width, 40) & ~sink(width)));
      if (pattern.node().depth > 50) pattern = window(2, i);
    }
    check_pairs(pattern, emit_all(pattern), 400, &random);
  }
  // Six times eight windows need 96 numbers, and the text has no other numbers.
  Pattern many;
  for (int i = 1; i <= 6; ++i) {
    Pattern some = window(i, i);
    for (int j = 1; j < 8; ++j) some = some | window(i, i + j);
    many = many & some;
  }
  CHECK(emit_all(many).numbers.size() == 32);
  CHECK(emit_all(many).lists.size() == 64);
}

TEST_CASE("many parts that are alike but for their numbers share one text") {
  Random random(test::seed_of(34));
  const auto shares = [&](const Pattern& pattern, std::int64_t calls) {
    const MaskCode code = emit_all(pattern);
    CAPTURE(code.text);
    CHECK(code.calls == calls);
    check_pairs(pattern, code, 400, &random);
  };
  const auto joined = [](const char* word, int count, const auto& one) {
    std::string text = word;
    for (int i = 0; i < count; ++i) text += (i > 0 ? ", " : "(") + one(i);
    return Pattern::parse(text + ")");
  };
  const auto chained = [](const char* sign, int count, const auto& one) {
    std::string text;
    for (int i = 0; i < count; ++i) text += (i > 0 ? sign : "") + one(i);
    return Pattern::parse(text);
  };
  const auto window_of = [](int i) { return fmt::format("window({}, {})", i % 50, i % 7); };
  const auto documents_of = [](int i) {
    return fmt::format("documents([{}, {}])", -40 + i, i + 3);
  };
  const auto not_dilated = [](int i) { return fmt::format("~dilated({})", i + 2); };
  const auto nested = [&](int i) {
    std::string text = fmt::format("(sink({}) & global([{}, 20]) | ", i, i + 4);
    for (int j = 0; j < 12; ++j)
      text += fmt::format("{}keys({}, {})", j ? " | " : "", i + j, i + 2 * j);
    return text + ")";
  };
  CHECK(emit_all(chained(" & ", 998, not_dilated)).text ==
        "m.all_of(1, 1, 0, [&](const auto& m) { return !m.dilated(0, q, k); })");
  CHECK(emit_all(joined("batches", 500, window_of)).text ==
        "m.one_of(0, 2, m.batch_turn(500), [&](const auto& m) { return m.window(0, 1, q, k); })");
  shares(chained(" & ", 998, not_dilated), 1);
  shares(chained(" | ", 300, window_of), 1);
  shares(joined("batches", 7, window_of), 7);
  shares(joined("batches", 9, window_of), 1);
  shares(joined("heads", 40, documents_of), 1);
  shares(joined("heads", 11, nested), 3);
  shares(chained(" | ", 60, nested), 3);
  std::vector<Pattern> groups;
  for (int i = 0; i < 12; ++i) groups.push_back(Pattern::parse(window_of(i)));
  shares(head_groups(2, groups), 1);
  // The groups are among other expressions, in any order, with numbers beyond the parameter block
  // before and after them.
  std::string mixed;
  for (int i = 0; i < 40; ++i) {
    mixed += (i > 0 ? " | " : "") + window_of(i) + " & " + not_dilated(i);
    mixed += fmt::format(" | queries({}, {})", i, i + 1);
    if (i % 6 == 0) mixed += " | causal & " + documents_of(i);
  }
  shares(Pattern::parse(mixed), 2 + 1 + 7 * 2);
  // If the parts have no numbers, there is nothing to choose.
  CHECK(emit_all(joined("heads", 20, [](int) { return std::string("causal"); })).text ==
        "m.causal(q, k)");
  // Random trees, each repeated many times with other numbers.
  for (int i = 0; i < 200; ++i) {
    std::vector<Pattern> parts;
    for (int j = 0; j < 12; ++j) parts.push_back(random_pattern(&random, 2, nullptr));
    const Pattern inner = i % 3 == 0 ? heads(parts) : i % 3 == 1 ? batches(parts) : parts[0];
    Pattern all = inner;
    for (const Pattern& part : parts) all = i % 2 == 0 ? (all & ~part) : (all | part);
    check_pairs(all, emit_all(all), 40, &random);
  }
}

TEST_CASE("the text depends on the structure alone") {
  const auto text = [](const char* expression) {
    return emit_all(Pattern::parse(expression)).text;
  };
  CHECK(text("causal & (window(511,0) | global(16))") ==
        "m.causal(q, k) & (m.window(0, 1, q, k) | m.global_first(2, q, k))");
  CHECK(text("causal & (window(7,90) | global(3))") ==
        text("causal & (window(511,0) | global(16))"));
  CHECK(text("window(-1, 5)") == "m.window_right(0, q, k)");
  CHECK(text("window(5, -1)") == "m.window_left(0, q, k)");
  CHECK(text("global([1,2]) | documents([3])") == text("global([]) | documents([1,2,3,4])"));
  CHECK(text("~(sink(1) | ~causal)") == "!(m.sink(0, q, k) | !m.causal(q, k))");
  CHECK(text("dense") == "true");
  CHECK(text("window(-1,-1) & causal") == "m.causal(q, k)");
  CHECK(text("~dense & causal") == "false");
  CHECK(text("causal | dense") == "true");
  CHECK(text("dilated(4)") == "m.dilated(0, q, k)");
  CHECK(text("block_dilated(4, 64)") == "m.band(0, 1, q, k)");
  CHECK(text("strided(8, 1, 64)") == text("strided(2, 9, 16)"));
  CHECK(text("random(2, 5, 16) & causal") == text("random(1, 77, 64) & causal"));
  CHECK(text("segment(64, 2)") == "m.segment(0, 1, q, k)");
  CHECK(text("hierarchical([(1, 2, 3), (4, -1, 6)])") ==
        "m.level(0, 1, 2, q, k) | m.band(3, 4, q, k)");
  CHECK(text("vertical_slash([], [1])") == text("vertical_slash([1, 2], [])"));
  CHECK(text("heads(causal, ~sink(3), dense)") ==
        "(m.turn(3) == 0 ? m.causal(q, k) : m.turn(3) == 1 ? !m.sink(0, q, k) : true)");
  CHECK(text("heads(dense, dense) & causal") == "m.causal(q, k)");
  CHECK(text("head_groups(4, causal, dense)") == "(m.group(0, 2) == 0 ? m.causal(q, k) : true)");
  CHECK(text("head_groups(1, causal, dense)") == text("heads(causal, dense)"));
  CHECK(text("head_groups(4, dense, dense)") == "true");
  CHECK(text("batches(causal, sink(3), dense)") ==
        "(m.batch_turn(3) == 0 ? m.causal(q, k) : m.batch_turn(3) == 1 ? m.sink(0, q, k) : true)");
  CHECK(text("batches(dense, dense) & causal") == "m.causal(q, k)");
  CHECK(text("batches(heads(causal, dense), sink(3))") ==
        "(m.batch_turn(2) == 0 ? (m.turn(2) == 0 ? m.causal(q, k) : true) : m.sink(0, q, k))");
  CHECK(text("window(-3, 10) | window(10, -3)") == "m.window(0, 1, q, k) | m.window(2, 3, q, k)");
  CHECK(text("window(-3, -1)") == "m.window_left(0, q, k)");
  CHECK(text("queries(0, 9) & keys(-4, 2)") == "m.queries(0, 1, q, k) & m.keys(2, 3, q, k)");
  CHECK(text("every(4, 1)") == text("every(16, 9)"));
}

TEST_CASE("what a device cannot hold is refused") {
  const auto code = [](const Pattern& pattern) { return code_of([&] { emit_all(pattern); }); };
  CHECK(code(window(std::int64_t{1} << 30, 0)) == ErrorCode{0});
  CHECK(code(window((std::int64_t{1} << 30) + 1, 0)) == ErrorCode::kUnsupported);
  CHECK(code(documents({0, std::int64_t{1} << 31})) == ErrorCode::kUnsupported);
  CHECK(code(global({-(std::int64_t{1} << 40)})) == ErrorCode::kUnsupported);
  Random random(test::seed_of(33));
  const Pattern a = blocks(test::random_layout(&random, 50, 50));
  const Pattern b = blocks(test::random_layout(&random, 50, 51));
  CHECK(code(a & ~a) == ErrorCode{0});
  CHECK(emit_all(a & causal()).uses_blocks);
  CHECK(emit_all(a & causal()).layout != nullptr);
  CHECK_FALSE(emit_all(a | dense()).uses_blocks);
  CHECK(code(a & b) == ErrorCode::kUnsupported);
  CHECK(code(dilated((std::int64_t{1} << 30) + 1)) == ErrorCode::kUnsupported);
  // The choices of 2^30 rows with one choice each fit into no list. Without Sk there is nothing
  // from which to choose.
  const auto emit_in = [](const MaskScope& scope) {
    return code_of([&] { emit(annulus::random(2, 3, 1), 32, scope); });
  };
  CHECK(emit_in({1, {0, std::int64_t{1} << 30}, {.seq_k = 1 << 30}}) == ErrorCode::kUnsupported);
  CHECK(emit_in({1, {0, 10}, {}}) == ErrorCode::kInvalidArgument);
}

// Compares all answers of RangeMask for a block with each of its pairs.
void check_ranges(const Pattern& pattern,
                  const std::function<tile::Possible(const tile::RangeMask&)>& answer) {
  CAPTURE(pattern.to_string());
  const MaskCode code = emit_all(pattern);
  const kernels::MaskParams params = params_of(code);
  const tile::MaskContext<32> context{params, nullptr, 0, 0, 0, 0, 0, 0, 0};
  for (int q = -6; q < 12; ++q) {
    for (int k = -6; k < 12; ++k) {
      for (const int size : {1, 2, 5, 9}) {
        bool visible = false, hidden = false;
        for (int i = q; i < q + size; ++i) {
          for (int j = k; j < k + size; ++j) (pattern.visible(0, i, j) ? visible : hidden) = true;
        }
        const tile::RangeMask mask(context, {q, q + size - 1}, {k, k + size - 1});
        const tile::Possible found = answer(mask);
        REQUIRE(found.visible == visible);
        REQUIRE(found.hidden == hidden);
      }
    }
  }
}

TEST_CASE("blocks of pairs: queries, keys and every know theirs exactly") {
  for (const auto& [a, b] : {std::pair{-3, 4}, std::pair{2, 3}, std::pair{-100, 100}}) {
    check_ranges(queries(a, b), [](const auto& m) { return m.queries(0, 1, 0, 0); });
    check_ranges(keys(a, b), [](const auto& m) { return m.keys(0, 1, 0, 0); });
  }
  for (const auto& [s, r] : {std::pair{1, 0}, std::pair{2, 1}, std::pair{4, 3}, std::pair{50, 2}}) {
    check_ranges(every(s, r), [](const auto& m) { return m.every(0, 1, 0, 0); });
  }
}

TEST_CASE("long functions of the masks are those that look each key up or divide") {
  for (const char* text :
       {"dilated(2)", "block_dilated(2, 3)", "hierarchical([(1, 2, 3)])", "strided(2, 1, 4)",
        "segment(4, 2)", "axial(3, 3)", "natten(3, 3, 3)", "every(2, 0)", "random(1, 2, 3)"}) {
    CAPTURE(text);
    CHECK(leaves::long_calls(emit_all(Pattern::parse(text)).text) > 0);
  }
  for (const char* text : {"causal", "window(1, 2)", "window(1, -1)", "sink(2)", "global(2)",
                           "queries(1, 2)", "keys(1, 2)", "documents([1])", "global([1])",
                           "vertical_slash([1], [2])", "head_groups(2, causal, sink(1))"}) {
    CAPTURE(text);
    CHECK(leaves::long_calls(emit_all(Pattern::parse(text)).text) == 0);
  }
}

TEST_CASE("queries outside the rows of a random list see nothing") {
  const MaskCode code = emit(annulus::random(4, 1, 8), 32, {2, {16, 40}, {.seq_k = 32}});
  const kernels::MaskParams params = params_of(code);
  const Context context{params, nullptr, 0, 0, 0, 0, 0, 1, 0};
  for (int k = -8; k < 40; ++k) {
    CHECK_FALSE(Reader(code.text, context, 15, k).whole());
    CHECK_FALSE(Reader(code.text, context, 40, k).whole());
    CHECK(Reader(code.text, context, 39, k).whole() == (k >= 0 && k < 32));
  }
}

TEST_CASE("blocks reads the tile's state or its bits") {
  kernels::MaskParams params{};
  const unsigned words[] = {0xffffffffu, 0x0000a5c3u};
  // A tile of 8 x 32 in granules of 2 x 8: its 4 x 4 bits are in one word.
  const auto context = [&](int state) {
    return Context{params, words, state, -6, 100, 1, 3, 0, 0};
  };
  for (int row = 0; row < 8; ++row) {
    for (int column = 0; column < kColumns; ++column) {
      const int q = -6 + row;
      const int k = 100 + column;
      CHECK(context(tile::kTileAllVisible).blocks(q, k));
      CHECK_FALSE(context(tile::kTileNoneVisible).blocks(q, k));
      CHECK(context(0).blocks(q, k));
      CHECK(context(1).blocks(q, k) == ((0xa5c3u >> (row / 2 * 4 + column / 8) & 1u) != 0));
    }
  }
}

}  // namespace
}  // namespace annulus::pattern
