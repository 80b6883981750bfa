#include "attention/score/score.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "annulus/types.h"
#include "support/refused_text.h"

namespace annulus::attention {
namespace {

void refused(const std::string& text, std::size_t column, const std::string& part) {
  test::refused_text([](const std::string& from) { return Score::parse(from); }, text, column,
                     part);
}

TEST_CASE("scores parse, and print as text that parses to the same") {
  CHECK(Score::parse("") == Score());
  CHECK(Score::parse(" \n") == Score());
  const Score all = Score::parse(
      "sink_logit([0.5, -1]), bias([1, 0, -1], [2, 0, 2]),alibi( [0.5,0.25] ) , softcap(3e1), "
      "scale(-0.125)");
  CHECK(all.scale == -0.125);
  CHECK(all.softcap == 30);
  CHECK(all.alibi == std::vector<double>{0.5, 0.25});
  CHECK(all.bias == std::vector<std::vector<double>>{{1, 0, -1}, {2, 0, 2}});
  CHECK(all.sink_logit == std::vector<double>{0.5, -1});
  CHECK(all.to_string() ==
        "scale(-0.125), softcap(30), alibi([0.5, 0.25]), bias([1, 0, -1], [2, 0, 2]), "
        "sink_logit([0.5, -1])");
  CHECK(Score::parse(all.to_string()) == all);
  CHECK(Score::parse("sink_logit(2)").to_string() == "sink_logit(2)");
  Score third;
  third.scale = 1.0 / 3;
  CHECK(Score::parse(third.to_string()) == third);
  CHECK(Score().to_string().empty());
}

TEST_CASE("what is no score is refused with its column") {
  refused("softcap", 8, "'('");
  refused("softcap(", 9, "number");
  refused("softcap(x)", 9, "number");
  refused("softcap(1", 10, "')'");
  refused("softcap(1) alibi([1])", 12, "','");
  refused("softcap(1), ", 13, "expected a score");
  refused("sofcap(1)", 1, "did you mean 'softcap'");
  refused("causal", 1, "known are scale");
  refused("scale(1), scale(2)", 11, "twice");
  refused("alibi(1)", 7, "'['");
  refused("alibi([])", 8, "number");
  refused("bias([1], 2)", 11, "'['");
  refused("scale(1e999)", 7, "double");
  refused("scale(\xff)", 7, "number");
}

void wrong(const Score& score, const std::string& part) {
  Problem problem;
  problem.heads = 2;
  problem.dim_qk = problem.dim_v = 64;
  problem.score = score;
  try {
    validate(problem);
    FAIL("it is valid: " << score.to_string());
  } catch (const Error& error) {
    const std::string message = error.what();
    CAPTURE(message);
    CHECK(error.code() == ErrorCode::kInvalidArgument);
    CHECK(message.find(part) != message.npos);
  }
}

TEST_CASE("numbers that no kernel can hold are named") {
  Score score;
  score.alibi = {1, std::numeric_limits<double>::quiet_NaN()};
  wrong(score, "alibi: entry 1 is nan");
  wrong(Score::parse("alibi([1, 2, 3])"), "alibi has 3 entries, but the problem 2 heads");
  wrong(Score::parse("sink_logit(1e30)"), "sink_logit: entry 0 is 1e+30");
  wrong(Score::parse("sink_logit([1, 2, 3])"), "sink_logit has 3");
  wrong(Score::parse("bias([1, 2])"), "table 0 has 2 entries");
  wrong(Score::parse("bias([1, 2, 3], [1])"), "table 1 has 1 entries");
  wrong(Score::parse("bias([1], [1], [1])"), "bias has 3");
  wrong(Score::parse("softcap(-1)"), "softcap is -1");
  score = {};
  score.bias = {{}};
  wrong(score, "table 0 has 0 entries");
}

TEST_CASE("terms by distance, and the tables that a kernel reads") {
  const Score score = Score::parse("alibi([0.5, 2]), bias([10, 20, 30, 40, 50])");
  CHECK(position_terms(score, 0, 0) == 30);
  CHECK(position_terms(score, 0, -1) == -0.5 + 40);  // the key before the query: q - k = 1
  CHECK(position_terms(score, 1, 1) == 2 + 20);
  CHECK(position_terms(score, 3, -100) == -200 + 50);
  CHECK(position_terms(score, 2, 100) == 50 + 10);
  const ScoreTables tables = score_tables(score);
  CHECK(tables.bias_reach == 2);
  REQUIRE(tables.slopes.size() == 2);
  CHECK(tables.slopes[1] == doctest::Approx(2 * std::log2(std::exp(1.0))));
  CHECK(tables.bias.size() == 5);
  CHECK(tables.sinks.empty());
}

}  // namespace
}  // namespace annulus::attention
