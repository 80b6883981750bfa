// Score expressions on the device, compared with the oracle, which evaluates the same tree.

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "annulus/types.h"
#include "attention/on_device.h"
#include "base/half.h"
#include "support/options.h"
#include "support/random_score.h"

namespace {

using namespace annulus;
using test::Case;
using test::check;
using test::device;
using test::DeviceAnswer;

Problem sample(const Pattern& pattern, const std::string& score) {
  Problem problem = test::problem_of(150, 170, 64, 64, pattern);
  problem.batch = 2;
  problem.heads = 4;
  problem.kv_heads = 2;
  problem.score = Score::parse(score);
  return problem;
}

void check_problem(const Problem& problem, std::uint64_t seed, const std::string& config = {}) {
  const Case c = test::make_case(problem, seed);
  PlanOptions options;
  options.config = config;
  check(c, test::run_case(device(), c, options));
}

TEST_CASE("an expression sees batch, head and positions, written out and in a loop") {
  const std::string cheap = "score_mod(score * 0.5 + 0.01 * (k - q) - 0.1 * h + 0.2 * b)";
  const std::string costly =
      "score_mod(score + table([[0.5, -1.0, 2.0], [0.0, 1.0, -3.0]], b, mod(k, 3)) * "
      "table([1.0, -0.5, 0.25, 2.0], h) + 0.1 * mod(q, 7))";
  for (const std::string& text : {cheap, costly}) {
    for (const Pattern& pattern : {causal(), causal() & documents({0, 40, 100})}) {
      check_problem(sample(pattern, text), 1);
      Problem carried = sample(pattern, text);
      carried.carry_in = carried.carry_out = true;
      carried.want_lse = false;
      carried.q0 = 1000;
      carried.k0 = 980;
      check_problem(carried, 2);
    }
  }
}

TEST_CASE("an expression takes what scale, soft-cap, ALiBi and bias have made") {
  const std::string rest =
      "scale(-0.3), softcap(4), alibi([0.1, -0.2]), bias([1, 2, -1], [0, 3, 0]), sink_logit(0.5), ";
  check_problem(sample(window(40, 10), rest + "score_mod(score - 0.1 * score * score)"), 3);
  check_problem(sample(window(40, 10), rest + "score_mod(where(k < q, score, 0.5 * score))"), 4);
}

TEST_CASE("branches of a sum see the same expression") {
  check_problem(sample(sum({causal() & segment(64, 1), window(30, 0)}),
                       "score_mod(score + 0.3 * mod(k, 3)), sink_logit(1)"),
                5);
}

TEST_CASE("random expressions") {
  base::Random random(test::options().seed);
  const int problems = std::max(8, test::options().problems / 8);
  for (int i = 0; i < problems; ++i) {
    Case c = test::random_case(test::options().seed + 50, static_cast<std::uint64_t>(i));
    Problem problem = c.problem;
    problem.score.score_mod = test::tame_score_expression(random, 1 + i % 5);
    check_problem(problem, static_cast<std::uint64_t>(i));
  }
}

TEST_CASE("-inf hides a key, and a row of hidden keys is empty") {
  const std::string texts[] = {"score_mod(where(k <= q, score, -inf))",
                               "score_mod(where((k <= q) & (mod(q, 3) != 0), score, -inf))"};
  for (int i = 0; i < 2; ++i) {
    const Case c = test::make_case(sample(dense(), texts[i]), 6);
    const DeviceAnswer answer = test::run_case(device(), c);
    check(c, answer);
    if (i == 0) {  // the pairs that the pattern would hide
      Case same = c;
      same.problem = sample(causal(), "");
      check(same, answer);
    } else {
      for (std::int64_t row = 0; row < 150; ++row) {
        if ((row + 20) % 3 != 0) continue;  // q0 is 20
        CHECK(answer.lse[static_cast<std::size_t>(row)] == -std::numeric_limits<float>::infinity());
        CHECK(answer.o.bits[static_cast<std::size_t>(answer.o.offset(0, row, 0))] == 0);
      }
    }
  }
}

TEST_CASE("NaN and +inf of an expression make their rows NaN and no others") {
  for (const char* value : {"log(-1.0 - abs(score))", "inf"}) {
    const std::string text =
        std::string("score_mod(where((q == 60) & (k == 21), ") + value + ", score))";
    const Case c = test::make_case(sample(causal(), text), 7);
    const DeviceAnswer answer = test::run_case(device(), c);
    check(c, answer);
    for (std::int64_t row = 0; row < 150; ++row) {
      const std::uint16_t bits =
          answer.o.bits[static_cast<std::size_t>(answer.o.offset(1, row, 2))];
      CAPTURE(row);
      CHECK(std::isnan(base::to_float(c.problem.dtype, bits)) == (row == 40));
    }
  }
}

TEST_CASE("another number or table compiles nothing") {
  const auto source = [&](const std::string& text) {
    return device().plan(sample(causal(), text)).info().source;
  };
  const std::string first =
      "score_mod(score + 0.123 * table([1.0, 2.0], h) + table([[3, 4], [5, 6]], q, k + 17) * 0.5)";
  CHECK(source(first) != "memory");
  int compiled = 0;
  for (int i = 0; i < 50; ++i) {
    const std::string n = std::to_string(i);
    compiled +=
        source("score_mod(score + " + n + ".5 * table([" + n + ".25, 2.0, 7], h) + table([[" + n +
               "], [8]], q, k + -" + n + ") * 1e-3)") != "memory";
  }
  CHECK(compiled == 0);
  CHECK(source("score_mod(score - 0.123 * h * h * h)") != "memory");  // another structure
}

TEST_CASE("every shipped configuration takes an expression") {
  const char* texts[] = {"score_mod(score + 0.02 * (k - q))",
                         "score_mod(score + table([0.5, -1.0, 2.0], mod(k - q, 3)))"};
  for (const char* config :
       {"mma m128 n64 w4 s2 x2", "mma m64 n64 w4 s2 x3", "wgmma m128 n128 w8 s2",
        "wgmma m128 n64 w8 s2 b2", "wgmma m64 n64 w8 s2 b2 h2"}) {
    if (std::string(config).starts_with("wgmma") && device().info().architecture != "sm_90a")
      continue;
    for (const char* text : texts) check_problem(sample(causal(), text), 8, config);
  }
}

}  // namespace
