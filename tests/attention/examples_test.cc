// The masks and scores that the authors of FlexAttention published as examples (He et al., 2024,
// and the collection with it). Each is written as a function of q and k, next to the expression of
// this library. The two must be equal for every pair, and the expression also runs on the device.

#include <doctest/doctest.h>

#include <cmath>
#include <functional>

#include "annulus/device.h"
#include "attention/score/score.h"
#include "attention/score/score_code.h"
#include "base/thread_pool.h"
#include "support/device.h"
#include "support/device_case.h"

namespace {

using namespace annulus;
using test::Case;
using test::DeviceAnswer;

const Device& device() {
  static const Device opened = Device::open(test::device_name());
  return opened;
}

base::ThreadPool& pool() {
  static base::ThreadPool threads;
  return threads;
}

constexpr std::int64_t kTokens = 192;
constexpr std::int64_t kHeads = 4;

using Mask = std::function<bool(int h, int q, int k)>;
using Modified = std::function<double(double score, int h, int q, int k)>;
using Added = std::function<double(int h, int q, int k)>;

Problem problem_of(const Pattern& pattern, const Score& score) {
  Problem problem;
  problem.heads = kHeads;
  problem.seq_q = problem.seq_k = kTokens;
  problem.dim_qk = problem.dim_v = 64;
  problem.pattern = pattern;
  problem.score = score;
  problem.want_lse = true;
  return problem;
}

DeviceAnswer run(const Case& c) {
  const DeviceAnswer answer = test::run_case(device(), c);
  const Comparison comparison = annulus::compare(
      c.problem, attention::reference(c.problem, c.inputs(), pool()), answer.result());
  CAPTURE(comparison.first_wrong);
  CHECK(comparison.within_tolerance);
  return answer;
}

void check_mask(const char* text, const Mask& mask) {
  CAPTURE(text);
  const Pattern pattern = Pattern::parse(text);
  for (int h = 0; h < kHeads; ++h) {
    for (int q = 0; q < kTokens; ++q) {
      for (int k = 0; k < kTokens; ++k) {
        if (pattern.visible(h, q, k) != mask(h, q, k)) FAIL("head " << h << " " << q << " " << k);
      }
    }
  }
  run(test::make_case(problem_of(pattern, {}), 5));
}

void check_added(const std::string& text, const Pattern& pattern, const Added& added) {
  CAPTURE(text);
  const Score score = Score::parse(text);
  for (int h = 0; h < kHeads; ++h) {
    for (int q = 0; q < kTokens; ++q) {
      for (int k = 0; k < kTokens; ++k) {
        const double found = attention::position_terms(score, h, k - q);
        if (found != doctest::Approx(added(h, q, k))) FAIL("head " << h << " " << q << " " << k);
      }
    }
  }
  run(test::make_case(problem_of(pattern, score), 6));
}

void check_modified(const std::string& text, const Pattern& pattern, const Modified& modified) {
  CAPTURE(text);
  const ScoreExpression expression = ScoreExpression::parse(text);
  for (int h = 0; h < kHeads; ++h) {
    for (int q = 0; q < kTokens; ++q) {
      for (int k = 0; k < kTokens; ++k) {
        const double score = (q * 7 + k * 3) % 11 - 5;
        const double found = attention::evaluate(expression, {score, 0, h, q, k});
        const double wanted = modified(score, h, q, k);
        if (found != wanted && found != doctest::Approx(wanted)) {
          FAIL("head " << h << " " << q << " " << k << ": " << found << ", not " << wanted);
        }
      }
    }
  }
  Score score;
  score.score_mod = expression;
  run(test::make_case(problem_of(pattern, score), 11));
}

TEST_CASE("masks") {
  check_mask("causal", [](int, int q, int k) { return q >= k; });
  check_mask("window(50, 0)", [](int, int q, int k) { return q >= k && q - k <= 50; });
  check_mask("prefix(70) | causal", [](int, int q, int k) { return k < 70 || q >= k; });
  check_mask("causal & documents([0, 33, 100])", [](int, int q, int k) {
    const auto document = [](int i) { return (i >= 33) + (i >= 100); };
    return q >= k && document(q) == document(k);
  });
  check_mask("window(40, 40) & dilated(4)",
             [](int, int q, int k) { return std::abs(q - k) <= 40 && std::abs(q - k) % 4 == 0; });
  check_mask("natten(12, 16, 5)", [](int, int q, int k) {
    const int q_x = q / 16, q_y = q % 16, k_x = k / 16, k_y = k % 16;
    const int x = std::clamp(q_x, 2, 11 - 2), y = std::clamp(q_y, 2, 15 - 2);
    return std::abs(x - k_x) <= 2 && std::abs(y - k_y) <= 2;
  });
  // The attention sinks of StreamingLLM.
  check_mask("causal & (sink(4) | window(32, 0))",
             [](int, int q, int k) { return q >= k && (k < 4 || q - k <= 32); });
  check_mask("heads(window(16, 16), dense)",
             [](int h, int q, int k) { return h % 2 == 1 || std::abs(q - k) <= 16; });
}

// Further masks of other libraries, from a collection of 221.
TEST_CASE("masks of ranges, remainders, groups of heads and windows off the diagonal") {
  check_mask("queries(10, 150)", [](int, int q, int) { return q >= 10 && q < 150; });
  check_mask("keys(70, 130) | causal",
             [](int, int q, int k) { return (k >= 70 && k < 130) || k <= q; });
  // A prefix that only the first 40 queries see, and no padding after key 180.
  check_mask("(causal | queries(0, 40) & keys(0, 40)) & keys(0, 180)",
             [](int, int q, int k) { return (k <= q || (q < 40 && k < 40)) && k < 180; });
  check_mask("causal & (every(5, 3) | window(20, 0))",
             [](int, int q, int k) { return k <= q && (k % 5 == 3 || q - k <= 20); });
  check_mask("every(70, 9)", [](int, int, int k) { return k % 70 == 9; });
  check_mask("window(-3, 10)", [](int, int q, int k) { return k - q >= 3 && k - q <= 10; });
  check_mask("window(90, -30)", [](int, int q, int k) { return q - k >= 30 && q - k <= 90; });
  check_mask("window(-1, -65)", [](int, int q, int k) { return q - k >= 65; });
  check_mask("head_groups(2, window(16, 0), keys(0, 100), causal)",
             [](int h, int q, int k) { return h / 2 == 0 ? k <= q && q - k <= 16 : k < 100; });
}

TEST_CASE("scores") {
  check_added("alibi([0.25, 0.0625, 0.015625, 0.00390625])", causal(),
              [](int h, int q, int k) { return std::exp2(-(h + 1) * 8.0 / kHeads) * (k - q); });
  // "Relative positional": score + (q - k).
  check_added("alibi([-1])", window(20, 20), [](int, int q, int k) { return q - k; });
  // T5's bias: a learned table, indexed by distance.
  check_added("bias([0.3, -1, 0.5, 2, 0, 0.25, -0.75])", dense(), [](int, int q, int k) {
    const double table[] = {0.3, -1, 0.5, 2, 0, 0.25, -0.75};
    return table[std::clamp(q - k, -3, 3) + 3];
  });
  check_added("softcap(5), scale(0.3), alibi([0.1, 0.2]), bias([1, 0, 2], [0, 3, 0])",
              causal() | sink(9), [](int h, int q, int k) {
                const double table[2][3] = {{1, 0, 2}, {0, 3, 0}};
                return (h % 2 == 0 ? 0.1 : 0.2) * (k - q) +
                       table[h % 2][std::clamp(q - k, -1, 1) + 1];
              });
}

TEST_CASE("scores as expressions") {
  check_modified("score", causal(), [](double score, int, int, int) { return score; });
  check_modified("where(k <= q, score, -inf)", dense(),
                 [](double score, int, int q, int k) { return k <= q ? score : -HUGE_VAL; });
  check_modified("score + (q - k)", window(20, 20),
                 [](double score, int, int q, int k) { return score + (q - k); });
  // "Relative 1d bias": a learned number for each head and distance, and for each pair.
  check_modified("score + table([[0.5, -1, 0.25, 2, 0], [1, 2, 3, 4, 5]], mod(h, 2), q - k + 2)",
                 causal(), [](double score, int h, int q, int k) {
                   const double table[2][5] = {{0.5, -1, 0.25, 2, 0}, {1, 2, 3, 4, 5}};
                   return score + table[h % 2][std::clamp(q - k + 2, 0, 4)];
                 });
  check_modified("score + exp2(-2.0 * (h + 1)) * (k - q)", causal(),
                 [](double score, int h, int q, int k) {
                   return score + std::exp2(-(h + 1) * 8.0 / kHeads) * (k - q);
                 });
  check_modified("2.0 * tanh(score / 2)", causal(),
                 [](double score, int, int, int) { return 2 * std::tanh(score / 2); });
  // T5's bias with buckets: distances are grouped into buckets, with a number for each bucket and
  // head.
  check_modified(
      "score + table([[0.5, 1, -1, 2], [0, 1, 0, -2]], mod(h, 2), "
      "table([0, 1, 2, 2, 2, 3], abs(q - k)))",
      dense(), [](double score, int h, int q, int k) {
        const double bias[2][4] = {{0.5, 1, -1, 2}, {0, 1, 0, -2}};
        const int bucket[] = {0, 1, 2, 2, 2, 3};
        return score + bias[h % 2][bucket[std::min(std::abs(q - k), 5)]];
      });
  // Jagged and packed sequences: the relative position within the document of each token.
  check_modified(
      "score + 0.1 * (table([0, 60, 130], table([0, 1, 2], div(q, 65))) - "
      "table([0, 60, 130], div(k, 65)))",
      causal() & documents({0, 65, 130}), [](double score, int, int q, int k) {
        const int starts[] = {0, 60, 130};
        return score + 0.1 * (starts[q / 65] - starts[k / 65]);
      });
}

TEST_CASE("soft-cap") {
  Problem problem = problem_of(causal(), Score::parse("softcap(2)"));
  run(test::make_case(problem, 7));
}

// Other libraries compute it this way: the output without a sink, multiplied by sigmoid(lse -
// sink).
TEST_CASE("a sink logit is a sigmoid of what is without it") {
  const Pattern pattern = causal() & ~window(3, 0);  // the first rows see no keys
  Problem problem = problem_of(pattern, Score::parse("sink_logit([0.5, -2, 4, 1])"));
  const Case with = test::make_case(problem, 8);
  const DeviceAnswer answer = run(with);
  problem.score = {};
  const Case without = test::make_case(problem, 8);
  const Reference plain = attention::reference(without.problem, without.inputs(), pool());
  const double sinks[] = {0.5, -2, 4, 1};
  Reference expected = plain;
  for (std::size_t at = 0; at < plain.rows.size(); ++at) {
    const double sink = sinks[plain.rows[at] / kTokens] * std::log2(std::exp(1.0));
    const double lse = plain.m[at] + std::log2(plain.l[at]);
    const double share = 1 / (1 + std::exp2(sink - lse));
    expected.m[at] = std::max(lse, sink);
    expected.l[at] = std::exp2(lse - expected.m[at]) + std::exp2(sink - expected.m[at]);
    for (std::size_t d = 0; d < 64; ++d) expected.o[at * 64 + d] *= share;
  }
  const Comparison comparison = annulus::compare(with.problem, expected, answer.result());
  CAPTURE(comparison.first_wrong);
  CHECK(comparison.within_tolerance);
}

TEST_CASE("a sink logit counts once, whatever is carried") {
  Problem problem = problem_of(sum({causal() & segment(64, 1), causal() & segment(128, 2)}),
                               Score::parse("sink_logit(1.5), alibi([0.1])"));
  run(test::make_case(problem, 9));
  problem.carry_in = true;
  run(test::make_case(problem, 9));
  problem.carry_out = true;
  problem.want_lse = false;
  run(test::make_case(problem, 9));
}

}  // namespace
