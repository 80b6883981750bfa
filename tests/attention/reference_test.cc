#include "attention/oracle/reference.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <limits>

#include "annulus/types.h"
#include "attention/oracle/taint.h"
#include "attention/score/score_code.h"
#include "base/half.h"
#include "base/thread_pool.h"
#include "support/random_problem.h"

namespace {

using namespace annulus;
using test::Case;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double value(const test::HostTensor& tensor, Dtype dtype, std::int64_t b, std::int64_t row,
             std::int64_t head, std::int64_t d) {
  return static_cast<double>(base::to_float(
      dtype, tensor.bits[static_cast<std::size_t>(tensor.offset(b, row, head) + d)]));
}

// Checks one row directly from the definition, without maxima.
void check_row(const Case& c, const Reference& oracle, std::size_t at) {
  const Problem& p = c.problem;
  const std::int64_t i = oracle.rows[at] % p.seq_q;
  const std::int64_t head = oracle.rows[at] / p.seq_q % p.heads;
  const std::int64_t b = oracle.rows[at] / p.seq_q / p.heads;
  const std::int64_t kv = head / (p.heads / p.kv_heads);
  long double sum = 0;
  std::vector<long double> o(static_cast<std::size_t>(p.dim_v), 0);
  if (p.carry_in) {
    const auto row = static_cast<std::size_t>(oracle.rows[at]);
    if (c.state_in.l[row] != 0.0f) {
      const long double weight = std::exp2(static_cast<long double>(c.state_in.m[row]));
      sum = weight * static_cast<long double>(c.state_in.l[row]);
      for (std::size_t d = 0; d < o.size(); ++d) {
        o[d] = weight * static_cast<long double>(c.state_in.acc[row * o.size() + d]);
      }
    }
  }
  for (std::int64_t j = 0; j < p.seq_k; ++j) {
    int times = 0;  // how often the key counts
    for (const Pattern& branch : p.pattern.branches()) {
      times += branch.visible(head, p.q_position() + i, p.k_position() + j, p.context());
    }
    if (times == 0) continue;
    long double score = 0;
    for (std::int64_t d = 0; d < p.dim_qk; ++d) {
      score += static_cast<long double>(value(c.q, p.dtype, b, i, head, d) *
                                        value(c.k, p.dtype, b, j, kv, d));
    }
    score *= static_cast<long double>(p.effective_scale());
    if (p.score.softcap > 0) {
      const auto cap = static_cast<long double>(p.score.softcap);
      score = cap * std::tanh(score / cap);
    }
    if (!p.score.alibi.empty()) {
      const auto slope = p.score.alibi[static_cast<std::size_t>(head) % p.score.alibi.size()];
      score += static_cast<long double>(slope) *
               static_cast<long double>(p.k_position() + j - p.q_position() - i);
    }
    if (!p.score.bias.empty()) {
      const auto& table = p.score.bias[static_cast<std::size_t>(head) % p.score.bias.size()];
      const auto reach = static_cast<std::int64_t>(table.size() / 2);
      const std::int64_t distance = p.q_position() + i - p.k_position() - j;
      score += static_cast<long double>(
          table[static_cast<std::size_t>(std::clamp(distance, -reach, reach) + reach)]);
    }
    if (p.score.score_mod) {
      score = static_cast<long double>(attention::evaluate(
          *p.score.score_mod,
          {static_cast<double>(score), b, head, p.q_position() + i, p.k_position() + j}));
    }
    const long double weight = times * std::exp(score);
    sum += weight;
    for (std::size_t d = 0; d < o.size(); ++d) {
      o[d] += weight *
              static_cast<long double>(value(c.v, p.dtype, b, j, kv, static_cast<std::int64_t>(d)));
    }
  }
  if (!p.score.sink_logit.empty() && !p.carry_out) {
    sum += std::exp(static_cast<long double>(
        p.score.sink_logit[static_cast<std::size_t>(head) % p.score.sink_logit.size()]));
  }
  if (sum == 0) {
    CHECK(oracle.l[at] == 0);
    CHECK(oracle.m[at] == -kInfinity);
    for (std::size_t d = 0; d < o.size(); ++d) CHECK(oracle.o[at * o.size() + d] == 0);
    return;
  }
  CHECK(oracle.m[at] + std::log2(oracle.l[at]) ==
        doctest::Approx(static_cast<double>(std::log2(sum))).epsilon(1e-9));
  for (std::size_t d = 0; d < o.size(); ++d) {
    const double expected = static_cast<double>(o[d] / sum);
    if (std::abs(oracle.o[at * o.size() + d] - expected) > 1e-9 * (1 + std::abs(expected))) {
      FAIL(c.text << " row " << oracle.rows[at] << " d " << d);
    }
  }
}

TEST_CASE("the oracle is the definition, for every feature") {
  base::ThreadPool pool(2);
  for (std::uint64_t index = 0; index < 60; ++index) {
    test::CaseLimits limits;
    limits.max_length = 40;
    const Case c = test::random_case(11, index, limits);
    CAPTURE(c.text);
    const Reference oracle = attention::reference(c.problem, c.inputs(), pool);
    REQUIRE(static_cast<std::int64_t>(oracle.rows.size()) ==
            c.problem.batch * c.problem.heads * c.problem.seq_q);
    CHECK_FALSE(oracle.sampled());
    for (std::size_t at = 0; at < oracle.rows.size(); at += 3) check_row(c, oracle, at);
  }
}

TEST_CASE("however many heads have no row, nothing is looked at") {
  Problem problem;
  problem.batch = INT32_MAX;
  problem.heads = kMaxHeads;
  problem.dim_qk = problem.dim_v = 32;
  REQUIRE_NOTHROW(validate(problem));
  base::ThreadPool pool(1);
  const Reference oracle = attention::reference(problem, {}, pool);
  CHECK(oracle.rows.empty());
  CHECK(attention::rows_reached(problem, {}, {}).empty());
}

TEST_CASE("the oracle has no limit of its own, and keeps to that of a scope") {
  Problem problem;
  problem.seq_q = problem.seq_k = 4000;
  problem.dim_qk = problem.dim_v = 32;
  problem.pattern = window(9, 0);
  const Case c = test::make_case(problem, 1);
  ReferenceOptions options;
  options.threads = 2;
  const auto run = [&] { reference(problem, c.inputs(), options); };
  REQUIRE_NOTHROW(run());  // 16 million pairs to evaluate, more steps than the default limit
  {
    const WorkScope scope({.steps = 1'000'000});
    CHECK_THROWS_WITH_AS(run(), doctest::Contains("1000000 steps"), Error);
    CHECK(scope.steps() < 1'200'000);
  }
  {
    std::atomic<int> asked = 0;
    const WorkScope scope({.steps = 0, .cancelled = [&] { return ++asked > 9; }});
    CHECK_THROWS_WITH_AS(run(), doctest::Contains("cancelled"), Error);
    CHECK(scope.steps() < 10'000'000);
  }
}

TEST_CASE("above the limit the oracle takes the end tiles and seeded rows of every head") {
  base::ThreadPool pool(2);
  Problem problem;
  problem.heads = 2;
  problem.seq_q = 1000;
  problem.seq_k = 10;
  problem.dim_qk = problem.dim_v = 32;
  const Case c = test::make_case(problem, 1);
  ReferenceOptions options;
  options.max_pairs = 10000;
  options.tile_rows = 64;
  options.sampled_rows = 20;
  const Reference oracle = attention::reference(problem, c.inputs(), pool, options);
  CHECK(oracle.sampled());
  // 1000 = 15 x 64 + 40
  REQUIRE(oracle.rows.size() == 2 * (64 + 40 + 20));
  for (std::int64_t row = 0; row < 64; ++row) {
    CHECK(oracle.rows[static_cast<std::size_t>(row)] == row);
  }
  CHECK(oracle.rows[64 + 20] == 960);
  CHECK(oracle.rows.back() == 1999);
  for (std::size_t at = 0; at < oracle.rows.size(); at += 7) check_row(c, oracle, at);
  const Reference again = attention::reference(problem, c.inputs(), pool, options);
  CHECK(again.rows == oracle.rows);
  options.seed = 1;
  CHECK(attention::reference(problem, c.inputs(), pool, options).rows != oracle.rows);
  options.max_pairs = 2 * 1000 * 10;
  CHECK_FALSE(attention::reference(problem, c.inputs(), pool, options).sampled());
}

// The oracle's own answer, rounded to the dtype.
struct Rounded {
  test::HostTensor o;
  std::vector<float> lse;
  HostResult result() const { return {o.bits.data(), o.strides, lse.data(), nullptr}; }
};

Rounded rounded(const Case& c, const Reference& oracle) {
  Rounded answer{c.o, {}};
  const auto dim = static_cast<std::size_t>(c.problem.dim_v);
  for (std::size_t at = 0; at < oracle.rows.size(); ++at) {
    const std::int64_t row = oracle.rows[at];
    const auto to = static_cast<std::size_t>(
        answer.o.offset(row / c.problem.seq_q / c.problem.heads, row % c.problem.seq_q,
                        row / c.problem.seq_q % c.problem.heads));
    for (std::size_t d = 0; d < dim; ++d) {
      answer.o.bits[to + d] =
          base::from_float(c.problem.dtype, static_cast<float>(oracle.o[at * dim + d]));
    }
    const double factor = c.problem.lse_base == LseBase::kNatural ? std::log(2.0) : 1.0;
    answer.lse.push_back(
        oracle.l[at] == 0 ? -std::numeric_limits<float>::infinity()
                          : static_cast<float>(factor * (oracle.m[at] + std::log2(oracle.l[at]))));
  }
  return answer;
}

Case small_case(Dtype dtype, LseBase base) {
  Problem problem;
  problem.batch = 2;
  problem.heads = problem.kv_heads = 2;
  problem.seq_q = 20;
  problem.seq_k = 12;  // causal leaves the first 8 rows empty
  problem.dim_qk = problem.dim_v = 32;
  problem.dtype = dtype;
  problem.pattern = causal();
  problem.want_lse = true;
  problem.lse_base = base;
  return test::make_case(problem, 5, test::Order::kPadded);
}

TEST_CASE("a rounded oracle is within tolerance, and every kind of defect is not") {
  base::ThreadPool pool(1);
  for (const Dtype dtype : {Dtype::kFloat16, Dtype::kBfloat16}) {
    for (const LseBase base : {LseBase::kNatural, LseBase::kTwo}) {
      const Case c = small_case(dtype, base);
      const Reference oracle = attention::reference(c.problem, c.inputs(), pool);
      const Rounded good = rounded(c, oracle);
      const Comparison same = annulus::compare(c.problem, oracle, good.result());
      CHECK(same.within_tolerance);
      CHECK(same.checked_rows == 80);
      CHECK(same.wrong_rows == 0);
      CHECK(same.error_row_max > 0);
      CHECK(same.error_row_max < (dtype == Dtype::kFloat16 ? 5e-4 : 4e-3));
      CHECK(same.error_lse < 1e-6);

      const auto broken = [&](std::int64_t b, std::int64_t row, std::int64_t h, float to) {
        Rounded bad = good;
        bad.o.bits[static_cast<std::size_t>(bad.o.offset(b, row, h) + 3)] =
            base::from_float(dtype, to);
        return annulus::compare(c.problem, oracle, bad.result());
      };
      const Comparison wrong = broken(1, 19, 0, 3.0f);
      CHECK_FALSE(wrong.within_tolerance);
      CHECK(wrong.wrong_rows == 1);
      CHECK(wrong.first_wrong.find("batch 1 head 0 row 19") != std::string::npos);
      CHECK(broken(0, 15, 1, std::nanf("")).error_row_max == kInfinity);
      CHECK(broken(0, 2, 1, 1e-4f).error_row_max == kInfinity);  // an empty row

      Rounded bad = good;
      bad.lse[2 * 20 + 17] += 0.01f;
      CHECK_FALSE(annulus::compare(c.problem, oracle, bad.result()).within_tolerance);
      bad = good;
      bad.lse[3] = -1e30f;  // an empty row must have -inf
      CHECK(annulus::compare(c.problem, oracle, bad.result()).error_lse == kInfinity);
      bad = good;
      bad.lse[15] = std::nanf("");
      CHECK(annulus::compare(c.problem, oracle, bad.result()).error_lse == kInfinity);
    }
  }
}

TEST_CASE("a carried state is compared by its meaning, and m by itself") {
  base::ThreadPool pool(1);
  Case c = small_case(Dtype::kBfloat16, LseBase::kNatural);
  c.problem.want_lse = false;
  c.problem.carry_out = true;
  const Reference oracle = attention::reference(c.problem, c.inputs(), pool);
  HostState state = HostState::empty(80, 32);
  for (std::size_t row = 0; row < 80; ++row) {
    state.m[row] = static_cast<float>(oracle.m[row]);
    state.l[row] = static_cast<float>(oracle.l[row]);
    for (std::size_t d = 0; d < 32; ++d) {
      state.acc[row * 32 + d] = static_cast<float>(oracle.o[row * 32 + d] * oracle.l[row]);
    }
  }
  HostResult result;
  result.state = &state;
  CHECK(annulus::compare(c.problem, oracle, result).within_tolerance);
  HostState other = state;
  other.m[19] += 1;  // l and acc compensate for it
  other.l[19] /= 2;
  for (std::size_t d = 0; d < 32; ++d) other.acc[19 * 32 + d] /= 2;
  result.state = &other;
  CHECK_FALSE(annulus::compare(c.problem, oracle, result).within_tolerance);
  other = state;
  other.m[0] = -1e30f;  // the internal value for an empty row must not appear in the result
  CHECK(annulus::compare(c.problem, oracle, result).error_lse == kInfinity);
  // A state or a reference whose arrays do not match the problem is not read.
  const auto refused = [&](const Reference& expected, const char* part) {
    CHECK_THROWS_WITH_AS(annulus::compare(c.problem, expected, result), doctest::Contains(part),
                         Error);
  };
  other = state;
  other.l.pop_back();
  refused(oracle, "has 80 rows of 32 values by its fields, but holds 2560 acc, 80 m and 79 l");
  other = HostState::empty(79, 32);
  refused(oracle, "state of the result has 79 rows of 32 values; the problem has 80 of 32");
  other = state;
  Reference wrong = oracle;
  wrong.rows.back() = 80;
  refused(wrong, "rows[79] of the reference is 80");
  wrong.rows.back() = 3;
  refused(wrong, "rows[79] of the reference is 3");
  wrong = oracle;
  wrong.m.pop_back();
  refused(wrong, "79 in m");
}

TEST_CASE("an answer may lose what fp32 cannot hold, and no more") {
  base::ThreadPool pool(1);
  Case c = small_case(Dtype::kBfloat16, LseBase::kNatural);
  const auto is_right_without_o = [&](float logit) {
    c.problem.score.sink_logit = {logit};
    const Reference oracle = attention::reference(c.problem, c.inputs(), pool);
    Rounded answer = rounded(c, oracle);
    std::ranges::fill(answer.o.bits, std::uint16_t{0});
    return annulus::compare(c.problem, oracle, answer.result()).within_tolerance;
  };
  CHECK(is_right_without_o(95));  // the probabilities are below e^-90
  CHECK_FALSE(is_right_without_o(70));
}

TEST_CASE("NaN in an operand taints exactly the rows that read it") {
  base::ThreadPool pool(1);
  Case c = small_case(Dtype::kFloat16, LseBase::kNatural);
  c.k.bits[static_cast<std::size_t>(c.k.offset(1, 4, 0))] = 0x7e00;
  const Reference oracle = attention::reference(c.problem, c.inputs(), pool);
  // Causal with q0 = -8: rows 12 and up of batch 1, head 0 see key 4.
  for (std::size_t row = 0; row < 80; ++row) {
    CHECK(oracle.tainted[row] == (row / 20 == 2 && row % 20 >= 12 ? 1 : 0));
  }
  const Rounded good = rounded(c, oracle);
  const Comparison comparison = annulus::compare(c.problem, oracle, good.result());
  CHECK(comparison.within_tolerance);
  CHECK(comparison.tainted_rows == 8);
  CHECK(comparison.checked_rows == 72);
  const Comparison excused =
      annulus::compare(c.problem, oracle, good.result(), [](std::int64_t row) { return row < 5; });
  CHECK(excused.tainted_rows == 13);
}

}  // namespace
