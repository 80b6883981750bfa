// Score expressions as trees, as text, as numbers on the CPU, and as text for a kernel.

#include "annulus/score.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>

#include "annulus/problem.h"
#include "annulus/types.h"
#include "attention/score/score_code.h"
#include "base/random.h"
#include "params/attention_params.h"
#include "support/random_score.h"
#include "support/refused_text.h"

namespace annulus::attention {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double at(const std::string& text, const ScorePoint& point = {0.5, 1, 2, 30, 20}) {
  return evaluate(ScoreExpression::parse(text), point);
}

void refused(const std::string& text, std::size_t column, const std::string& part) {
  test::refused_text([](const std::string& from) { return ScoreExpression::parse(from); }, text,
                     column, part);
}

TEST_CASE("an expression is what its operators say, and its text") {
  const auto [score, b, h, q, k] = score_variables();
  const ScoreExpression made =
      where((q >= k) & ~(ne(b, 0) | (h < 3)), score + 0.5 * (k - q), -kInfinity);
  CHECK(made.to_string() == "where(q >= k & ~(b != 0 | h < 3), score + 0.5 * (k - q), -inf)");
  CHECK(ScoreExpression::parse(made.to_string()) == made);
  CHECK(ScoreExpression() == score);
  CHECK_FALSE(score + 1 == score + 1.0);
  CHECK((score + 1.0).to_string() == "score + 1.0");
  CHECK((score - (q - (k - h))).to_string() == "score - (q - (k - h))");
  CHECK(((score - q) - k).to_string() == "score - q - k");
  CHECK((-score * 2).to_string() == "-score * 2");
  CHECK((-(score * 2)).to_string() == "-(score * 2)");
  CHECK((-ScoreExpression(2)).to_string() == "-(2)");
  CHECK((-(-score)).to_string() == "-(-score)");
  const ScoreTable pairs = ScoreTable::reals({1, 2.5, -kInfinity, 1e30}, 2);
  const ScoreTable each = ScoreTable::integers({3, -4});
  CHECK((score + pairs(h, each(q - k))).to_string() ==
        "score + table([[1.0, 2.5], [-inf, 1e+30]], h, table([3, -4], q - k))");
}

TEST_CASE("a tree of the greatest depth prints as text that parses to the same") {
  ScoreExpression made;  // the tree `score`, which has depth 1
  for (int depth = 2; depth <= 64; ++depth) {
    made = -made;
    CHECK(ScoreExpression::parse(made.to_string()) == made);
  }
  CHECK_THROWS_WITH_AS(-made, "the expression nests 65 levels deep, at most 64", Error);
}

TEST_CASE("random expressions print as text that parses to the same") {
  base::Random random(3);
  for (int i = 0; i < 500; ++i) {
    const ScoreExpression made = test::random_score_expression(random, 5);
    CAPTURE(made.to_string());
    CHECK(ScoreExpression::parse(made.to_string()) == made);
  }
}

TEST_CASE("values are those of the definition") {
  CHECK(at("score") == 0.5);
  CHECK(at("b + 10 * h") == 21);
  CHECK(at("k - q") == -10);
  CHECK(at("1 / 4") == 0.25);
  CHECK(at("div(-7, 2)") == -4);
  CHECK(at("mod(-7, 2)") == 1);
  CHECK(at("mod(7, -2)") == -1);
  CHECK(at("div(q, 0) + mod(q, 0)") == 0);
  CHECK(at("div(-2147483648, -1)") == -2147483648.0);
  CHECK(at("q * 100000000") == -1294967296);  // 3e9 in 32 bits
  CHECK(at("q * 100000000.0") == 3e9);
  CHECK(at("min(q, k) + max(q, 2.5) + abs(k - q)") == 60);
  CHECK(at("floor(-1.5)") == -2);
  CHECK(at("where(q == 30 & k != 20 | h > 1, 7, score)") == 7);
  CHECK(at("where(~(q <= 30), 0, score)") == 0.5);
  CHECK(at("where(score > 0, score, log(score - 1))") == 0.5);  // the other branch is NaN
  CHECK(at("tanh(score)") == doctest::Approx(std::tanh(0.5)));
  CHECK(at("sigmoid(score) + exp(score) + exp2(score)") ==
        doctest::Approx(1 / (1 + std::exp(-0.5)) + std::exp(0.5) + std::exp2(0.5)));
  CHECK(at("log(score) + log2(score) + sqrt(score)") ==
        doctest::Approx(std::log(0.5) - 1 + std::sqrt(0.5)));
  CHECK(at("score / 0") == kInfinity);
  CHECK(at("table([10, 20, 30], h)") == 30);
  // Indexes are clamped to the ends.
  CHECK(at("table([10, 20, 30], k - q) + table([10, 20, 30], q)") == 40);
  CHECK(at("table([[1, 2, 3], [4, 5, 6]], b, h - 1)") == 5);
  CHECK(at("0.1") == static_cast<double>(0.1f));  // the device has this value
}

TEST_CASE("what is no expression is refused with its column") {
  refused("", 1, "expected a number");
  refused("score +", 8, "expected a number");
  refused("scor + 1", 1, "did you mean 'score'");
  refused("score 1", 7, "expected a sign or the end");
  refused("(score", 7, "')'");
  refused("tanh score", 6, "'('");
  refused("min(score)", 10, "','");
  refused("q < k < h", 7, "do not chain");
  refused("score & q", 7, "& takes comparisons, but is given a real number");
  refused("1 + (q < k)", 3, "+ takes numbers, but is given a comparison");
  refused("where(q, 1, 2)", 1, "where takes a comparison as its first operand");
  refused("div(q, 2.0)", 1, "div takes integers, but is given a real number");
  refused("table([1, 2], score)", 1, "index of a table takes integers");
  refused("table([1, 2], q, k)", 1, "two indices are given to a table without rows");
  refused("table([[1, 2], [3]], q, k)", 18, "a row of 1 values after rows of 2");
  refused("table([], q)", 8, "number");
  refused("score + 3000000000", 9, "32 bits");
  refused("score * 1e39", 9, "fp32");
  refused("score * 1e999", 9, "double");
  refused("\xff", 1, "expected a number");
  refused(std::string(10000, '(') + "q", 130, "levels deep");
  refused(std::string(10000, '-') + "q", 130, "levels deep");
  std::string chain = "q";
  for (int i = 0; i < 100; ++i) chain += " + 1";
  refused(chain, 255, "levels deep");
}

TEST_CASE("a score expression is a score") {
  const Score score = Score::parse(" score_mod(score + 0.5 * (k - q)) , softcap(3)");
  REQUIRE(score.score_mod.has_value());
  CHECK(score.to_string() == "softcap(3), score_mod(score + 0.5 * (k - q))");
  CHECK(Score::parse(score.to_string()) == score);
  CHECK_FALSE(score == Score::parse("softcap(3)"));
  try {
    Score::parse("softcap(3), score_mod(scroe)");
    FAIL("it parses");
  } catch (const Error& error) {
    CHECK(std::string(error.what()).find("column 23: unknown 'scroe'") == 0);
  }
  Problem problem;
  problem.dim_qk = problem.dim_v = 64;
  problem.score = Score::parse("score_mod(q < k)");
  CHECK_THROWS_WITH_AS(validate(problem), doctest::Contains("where(..., score, -inf)"), Error);
}

TEST_CASE("numbers that no expression takes") {
  CHECK_THROWS_AS(ScoreExpression(std::nan("")), Error);
  CHECK_THROWS_AS(ScoreExpression(std::int64_t{1} << 31), Error);
  CHECK_THROWS_AS(ScoreExpression(~std::uint64_t{0}), Error);
  CHECK_THROWS_AS(ScoreExpression(1e300), Error);
  CHECK_THROWS_AS(ScoreTable::reals({}), Error);
  CHECK_THROWS_AS(ScoreTable::reals({1, 2, 3}, 2), Error);
  CHECK_THROWS_AS(ScoreTable::reals({1, 2, 3}, -1), Error);
  CHECK_THROWS_AS(ScoreTable::reals({std::nan("")}), Error);
  CHECK_THROWS_AS(ScoreTable::integers({1, 2})(ScoreExpression()), Error);
  // A tree that doubles ten times is too large, even though its shared nodes are few.
  ScoreExpression doubled;
  CHECK_THROWS_AS(
      [&] {
        for (int i = 0; i < 10; ++i) doubled = doubled + doubled;
      }(),
      Error);
}

TEST_CASE("the text of the kernel depends on the structure alone") {
  const auto code = [](const std::string& text) {
    return score_code(ScoreExpression::parse(text));
  };
  const ScoreCode first = code("score + 0.5 * (k - q) - table([1.5, 2], h - 3)");
  CHECK(first.structure.text == "score + m.real(0) * (k - q) - m.reals(1, h - m.integer(3))");
  CHECK(first.numbers.size() == 4);
  CHECK(first.words.size() == 2);
  CHECK(first.structure.positions);
  CHECK(
      score_structure(ScoreExpression::parse("score + 2.5 * (k - q) - table([9.5], h - 1)")).text ==
      first.structure.text);
  const ScoreCode other = code("score + -7.25 * (k - q) - table([4.5, 2, 9], h - -1)");
  CHECK(other.structure.text == first.structure.text);
  CHECK_FALSE(other.numbers == first.numbers);
  CHECK_FALSE(code("score + 3 * (k - q)").structure.text ==
              code("score + 3.0 * (k - q)").structure.text);
  CHECK_FALSE(code("score * h").structure.positions);
  CHECK_FALSE(code("score * 0.5").structure.costly);
  CHECK(code("table([1], h) * score").structure.costly);
  CHECK_FALSE(score_code(std::nullopt).structure.present());
  // If there are more numbers than a kernel's parameters hold, the rest is stored before the
  // tables.
  std::string many = "table([7, 8], q)";
  for (int i = 0; i < 30; ++i) many += " + " + std::to_string(i);
  const ScoreCode spilled = code(many);
  CHECK(spilled.numbers.size() == kernels::kScoreNumbers);
  REQUIRE(spilled.words.size() == 32 - kernels::kScoreNumbers + 2);
  CHECK(spilled.numbers[0] == 32 - kernels::kScoreNumbers);  // the index at which the table begins
  CHECK(spilled.words.back() == 8);
  // A table that is read twice is stored once.
  const auto [score, b, h, q, k] = score_variables();
  const ScoreTable table = ScoreTable::reals({1, 2, 3});
  CHECK(score_code(score + table(q) * table(k)).words.size() == 3);
}

}  // namespace
}  // namespace annulus::attention
