// Unusual values: NaN, infinity, huge scores, and rows that see nothing.

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "attention/on_device.h"
#include "base/half.h"

namespace {

using namespace annulus;
using test::Case;
using test::check;
using test::device;
using test::DeviceAnswer;
using test::pool;
using test::problem_of;

TEST_CASE("NaN and infinity reach the rows of tiles that read them and no others") {
  PlanOptions options;
  options.config = "mma m64 n64 w4 s2 x3";
  for (const std::uint16_t poison : {0x7fc0, 0x7f80, 0xff80}) {  // bf16 NaN, inf, -inf
    for (const bool in_value : {false, true}) {
      Problem problem = problem_of(256, 256, 64, 64, causal());
      const Case clean = test::make_case(problem, 8);
      const DeviceAnswer expected = test::run_case(device(), clean, options);
      Case c = clean;
      test::HostTensor& tensor = in_value ? c.v : c.k;
      tensor.bits[static_cast<std::size_t>(tensor.offset(0, 130, 0) + 5)] = poison;
      const DeviceAnswer answer = test::run_case(device(), c, options);
      // Key 130 lies in column tile 2, which tile rows 2 and 3 read.
      for (std::int64_t row = 0; row < 256; ++row) {
        const auto at = static_cast<std::size_t>(answer.o.offset(0, row, 0));
        bool same = answer.lse[static_cast<std::size_t>(row)] ==
                    expected.lse[static_cast<std::size_t>(row)];
        for (std::size_t d = 0; d < 64; ++d) {
          same = same && answer.o.bits[at + d] == expected.o.bits[at + d];
        }
        if (row < 128) {
          if (!same) FAIL("row " << row << " was reached");
        }
      }
      // Rows that see a NaN must give NaN.
      if (poison == 0x7fc0) {
        for (std::int64_t row = 130; row < 256; ++row) {
          const auto at = static_cast<std::size_t>(answer.o.offset(0, row, 0));
          const std::uint16_t bits = answer.o.bits[at + 5];
          if ((bits & 0x7f80) != 0x7f80) FAIL("row " << row << " hides the NaN");
        }
      }
    }
  }
}

TEST_CASE("scores as large as fp32 can tell apart are right, and larger ones never look right") {
  // Every product of row i is exactly 64 * 2^n (1 + j / 64). The last key gets all the weight.
  const Case drawn = test::make_case(problem_of(64, 64, 64, 64, dense()), 12);
  for (const int exponent : {0, 10, 20, 25, 26, 27, 28, 30, 40, 80, 110, 118}) {
    Case c = drawn;
    for (std::int64_t row = 0; row < 64; ++row) {
      const float sign = row % 2 ? -1.0f : 1.0f;  // a negative sign gives it to the first key
      for (std::int64_t d = 0; d < 64; ++d) {
        c.q.bits[static_cast<std::size_t>(c.q.offset(0, row, 0) + d)] =
            base::from_float(Dtype::kBfloat16, std::ldexp(sign, exponent));
        c.k.bits[static_cast<std::size_t>(c.k.offset(0, row, 0) + d)] =
            base::from_float(Dtype::kBfloat16, 1 + static_cast<float>(row) / 64);
      }
    }
    CAPTURE(exponent);
    const Reference oracle = attention::reference(c.problem, c.inputs(), pool());
    const DeviceAnswer answer = test::run_case(device(), c);
    const Comparison comparison = annulus::compare(c.problem, oracle, answer.result());
    // In base 2 the largest is 64 * 2^n * 2 / 8 * 1.44: 2^31 lies between n = 26 and 27.
    if (exponent <= 26) {
      CHECK_MESSAGE(comparison.within_tolerance, comparison.first_wrong);
    } else if (!comparison.within_tolerance) {
      CHECK(comparison.first_wrong.find("2^31") != std::string::npos);
    }
    for (std::size_t row = 0; row < 64; ++row) {
      const float o =
          base::to_float(Dtype::kBfloat16, answer.o.bits[static_cast<std::size_t>(answer.o.offset(
                                               0, static_cast<std::int64_t>(row), 0))]);
      const double error = std::abs(static_cast<double>(o) - oracle.o[row * 64]);
      CHECK_FALSE(error > 0.1);  // a NaN passes
    }
  }
}

// A configuration of each family that the device supports.
std::vector<PlanOptions> families() {
  std::vector<PlanOptions> all(1);
  all[0].config = "mma m64 n64 w4 s2 x3";
  if (device().info().architecture == "sm_90a") {
    all.emplace_back().config = "wgmma m128 n128 w8 s2";
  }
  return all;
}

TEST_CASE("a row whose scores are beyond fp32 never looks empty, in its LSE or as a state") {
  for (const PlanOptions& options : families()) {
    CAPTURE(options.config);
    for (const bool carried : {false, true}) {
      Problem problem = problem_of(64, 100, 64, 64, dense());
      problem.want_lse = !carried;
      problem.carry_out = carried;
      Case c = test::make_case(problem, 13);
      for (std::uint16_t& bits : c.q.bits) {
        bits = base::from_float(Dtype::kBfloat16,
                                std::ldexp(base::to_float(Dtype::kBfloat16, bits), 60));
      }
      const DeviceAnswer answer = test::run_case(device(), c, options);
      for (std::size_t row = 0; row < 64; ++row) {
        if (carried) {
          CHECK(answer.state.l[row] != 0);
        } else {
          CHECK(answer.lse[row] != -std::numeric_limits<float>::infinity());
        }
      }
    }
  }
}

TEST_CASE("a state that comes in with l = 0 is empty, whatever m and acc hold") {
  for (const PlanOptions& options : families()) {
    CAPTURE(options.config);
    Problem problem = problem_of(100, 60, 64, 64, causal());  // the first 40 rows see no key
    problem.carry_in = true;
    Case c = test::make_case(problem, 14);
    for (std::size_t row = 0; row < 100; row += 3) {
      c.state_in.l[row] = 0;
      c.state_in.m[row] = row % 2 == 0 ? 1e6f : std::numeric_limits<float>::quiet_NaN();
      for (std::size_t d = 0; d < 64; ++d) {
        c.state_in.acc[row * 64 + d] = std::numeric_limits<float>::quiet_NaN();
      }
    }
    const DeviceAnswer answer = test::run_case(device(), c, options);
    const Comparison comparison = test::compare(c, answer);
    CHECK(comparison.checked_rows == 100);
    CHECK_MESSAGE(comparison.within_tolerance, comparison.first_wrong);
  }
}

TEST_CASE("a NaN in a query stays in its own row") {
  Problem problem = problem_of(100, 100, 64, 64, dense());
  const Case clean = test::make_case(problem, 9);
  const DeviceAnswer expected = test::run_case(device(), clean);
  Case c = clean;
  c.q.bits[static_cast<std::size_t>(c.q.offset(0, 17, 0))] = 0x7fc0;
  const DeviceAnswer answer = test::run_case(device(), c);
  for (std::int64_t row = 0; row < 100; ++row) {
    const auto at = static_cast<std::size_t>(answer.o.offset(0, row, 0));
    const bool nan = (answer.o.bits[at] & 0x7fff) > 0x7f80;
    CHECK(nan == (row == 17));
    if (row != 17) CHECK(answer.o.bits[at] == expected.o.bits[at]);
  }
}

TEST_CASE("what a static cache holds beside the keys that rows see reaches nothing") {
  // make_case() fills these keys with NaN. The lengths, q0 and the visible keys are not multiples
  // of tiles.
  struct Cache {
    std::int64_t seq_q, seq_k, q0;
    Pattern pattern;
  };
  const std::vector<Cache> caches = {{1, 300, 76, causal()},
                                     {100, 300, 0, causal()},
                                     {100, 600, 300, causal() & window(90, 0)},
                                     {1, 600, 301, causal() & window(70, 0)},
                                     {40, 300, 10, keys(3, 5) | keys(70, 71)},
                                     {64, 300, 500, keys(400, 500)}};
  for (const PlanOptions& options : families()) {
    for (const Cache& cache : caches) {
      Problem problem = problem_of(cache.seq_q, cache.seq_k, 64, 64, cache.pattern);
      problem.q0 = cache.q0;
      const Case c = test::make_case(problem, 15);
      const DeviceAnswer answer = test::run_case(device(), c, options);
      check(c, answer);
      CHECK(test::compare(c, answer).checked_rows == cache.seq_q);
      PlanOptions split = options;
      split.kv_splits = 3;
      check(c, test::run_case(device(), c, split));
    }
  }
}

TEST_CASE("rows that see nothing give 0 and -inf, whatever lies around them") {
  Problem problem = problem_of(200, 100, 96, 96, causal());  // the first 100 rows are empty
  problem.heads = 2;
  const Case c = test::make_case(problem, 10);
  const DeviceAnswer answer = test::run_case(device(), c);
  check(c, answer);
  for (std::int64_t row = 0; row < 100; ++row) {
    CHECK(answer.lse[static_cast<std::size_t>(row)] == -std::numeric_limits<float>::infinity());
    CHECK((answer.o.bits[static_cast<std::size_t>(answer.o.offset(0, row, 1) + 7)] & 0x7fff) == 0);
  }
  problem.seq_k = 0;
  const Case none = test::make_case(problem, 10);
  check(none, test::run_case(device(), none));
}

}  // namespace
