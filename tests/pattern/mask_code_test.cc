#include "pattern/mask_code.h"

#include <doctest/doctest.h>

#include <cctype>
#include <numeric>

#include "pattern/node.h"
#include "pattern/random_pattern.h"

// The device's own functions, compiled for the host. They join bools without branches on purpose.
#ifdef __clang__
#pragma clang diagnostic ignored "-Wbitwise-instead-of-logical"
#endif
#define __device__
#define __forceinline__ inline
#include "tile/mask.cuh"

namespace annulus::pattern {
namespace {

using base::Random;
using test::between;
using test::code_of;
using test::random_pattern;

constexpr int kColumns = 32;
using Context = tile::MaskContext<kColumns>;

// Evaluates the text of a MaskCode with the precedence of C++, calling the real functions.
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
      const bool value = any();
      REQUIRE(accept(")"));
      return value;
    }
    REQUIRE(accept("m."));
    const std::size_t open = text_.find('(', at_);
    const std::string name = text_.substr(at_, open - at_);
    at_ = open + 1;
    int slots[2] = {0, 0};
    for (int i = 0; std::isdigit(static_cast<unsigned char>(text_[at_])) != 0; ++i) {
      REQUIRE(i < 2);
      while (std::isdigit(static_cast<unsigned char>(text_[at_])) != 0) {
        slots[i] = slots[i] * 10 + (text_[at_++] - '0');
      }
      REQUIRE(accept(", "));
    }
    REQUIRE(accept("q, k)"));
    if (name == "causal") return context_.causal(q_, k_);
    if (name == "window") return context_.window(slots[0], slots[1], q_, k_);
    if (name == "window_left") return context_.window_left(slots[0], q_, k_);
    if (name == "window_right") return context_.window_right(slots[0], q_, k_);
    if (name == "sink") return context_.sink(slots[0], q_, k_);
    if (name == "global_first") return context_.global_first(slots[0], q_, k_);
    if (name == "global_listed") return context_.global_listed(slots[0], slots[1], q_, k_);
    if (name == "documents") return context_.documents(slots[0], slots[1], q_, k_);
    if (name == "blocks") return context_.blocks(q_, k_);
    FAIL("unknown function " << name);
    return false;
  }

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

MaskCode emit_all(const Pattern& pattern) {
  return emit(pattern, static_cast<std::size_t>(kernels::kMaskNumbers));
}

TEST_CASE("random trees as code agree with their elements") {
  Random random(31);
  for (int i = 0; i < 1500; ++i) {
    const Pattern pattern = random_pattern(&random, 1 + static_cast<int>(random.below(6)), nullptr);
    const MaskCode code = emit_all(pattern);
    CHECK_FALSE(code.uses_blocks);
    const kernels::MaskParams params = params_of(code);
    const Context context{params, nullptr, 0, 0, 0, 0, 0};
    for (int draw = 0; draw < 60; ++draw) {
      const auto q = static_cast<int>(between(&random, -80, 180));
      const auto k = static_cast<int>(between(&random, -80, 180));
      if (Reader(code.text, context, q, k).whole() != pattern.visible(0, q, k)) {
        FAIL(pattern.to_string() << " q " << q << " k " << k << ": " << code.text);
      }
    }
  }
}

TEST_CASE("numbers beyond the parameter block continue in the lists") {
  Random random(32);
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
    const MaskCode code = emit_all(pattern);
    const kernels::MaskParams params = params_of(code);
    const Context context{params, nullptr, 0, 0, 0, 0, 0};
    for (int draw = 0; draw < 400; ++draw) {
      const auto q = static_cast<int>(between(&random, -80, 180));
      const auto k = static_cast<int>(between(&random, -80, 180));
      if (Reader(code.text, context, q, k).whole() != pattern.visible(0, q, k)) {
        FAIL(pattern.to_string() << " q " << q << " k " << k << ": " << code.text);
      }
    }
  }
  // A hundred windows need two hundred numbers, and the text has no other.
  Pattern many = window(1, 1);
  for (int i = 2; i <= 100; ++i) many = many | window(i, i);
  CHECK(emit_all(many).numbers.size() == 32);
  CHECK(emit_all(many).lists.size() == 168);
  CHECK(emit_all(many).costly);
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
}

TEST_CASE("code that reads memory or is long is called costly") {
  const auto costly = [](const char* expression) {
    return emit_all(Pattern::parse(expression)).costly;
  };
  CHECK_FALSE(costly("causal & (window(511,0) | global(16))"));
  CHECK(costly("documents([0, 5])"));
  CHECK(costly("global([])"));
}

TEST_CASE("what a device cannot hold is refused") {
  const auto code = [](const Pattern& pattern) { return code_of([&] { emit_all(pattern); }); };
  CHECK(code(window(std::int64_t{1} << 30, 0)) == ErrorCode{0});
  CHECK(code(window((std::int64_t{1} << 30) + 1, 0)) == ErrorCode::kUnsupported);
  CHECK(code(documents({0, std::int64_t{1} << 31})) == ErrorCode::kUnsupported);
  CHECK(code(global({-(std::int64_t{1} << 40)})) == ErrorCode::kUnsupported);
  Random random(33);
  const Pattern a = blocks(test::random_layout(&random, 50, 50));
  const Pattern b = blocks(test::random_layout(&random, 50, 51));
  CHECK(code(a & ~a) == ErrorCode{0});
  CHECK(emit_all(a & causal()).uses_blocks);
  CHECK(emit_all(a & causal()).layout != nullptr);
  CHECK_FALSE(emit_all(a | dense()).uses_blocks);
  CHECK(code(a & b) == ErrorCode::kUnsupported);
}

TEST_CASE("blocks reads the tile's state or its bits") {
  kernels::MaskParams params{};
  const unsigned words[] = {0xffffffffu, 0x0000a5c3u};
  // A tile of 8 x 32 in granules of 2 x 8: 4 x 4 bits in one word.
  const auto context = [&](int state) { return Context{params, words, state, -6, 100, 1, 3}; };
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
