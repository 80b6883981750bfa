// Scales of e4m3 operands that are small, large or zero, scores beyond the range of 8 bits, and
// incoming states.

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

constexpr float kInfinity = std::numeric_limits<float>::infinity();

bool has_kernels() { return device().info().architecture == "sm_90a"; }

// One tile of queries and three blocks of keys.
Problem problem_of_blocks() {
  Problem problem = test::problem_of(64, 192, 64, 64, dense());
  problem.dtype = Dtype::kFloat8E4M3;
  problem.scale_blocks = {32, 64, 64};
  return problem;
}

float first_of(const DeviceAnswer& answer, std::int64_t row) {
  return base::bf16_to_float(answer.o.bits[static_cast<std::size_t>(answer.o.offset(0, row, 0))]);
}

TEST_CASE("a scale that is none makes NaN of the rows that read it, however scores are made") {
  if (!has_kernels()) return;
  Problem problem = problem_of_blocks();
  for (const double softcap : {0.0, 5.0}) {
    problem.score.softcap = softcap;
    const Case clean = test::make_case(problem, 31);
    const DeviceAnswer expected = test::run_case(device(), clean);
    check(clean, expected);
    for (const float bad : {-1.0f, -1e-30f, kInfinity, -kInfinity, 5e37f}) {
      CAPTURE(bad);
      for (int which = 0; which < 3; ++which) {
        CAPTURE(which);
        Case c = clean;
        (which == 0 ? c.scale_q : which == 1 ? c.scale_k : c.scale_v)[1] = bad;
        const DeviceAnswer answer = test::run_case(device(), c);
        for (std::int64_t row = 0; row < 64; ++row) {
          const bool reads = which > 0 || row >= 32;
          if (reads ? !std::isnan(first_of(answer, row))
                    : first_of(answer, row) != first_of(expected, row)) {
            FAIL_CHECK("row " << row << " is " << first_of(answer, row));
          }
        }
      }
    }
    Case c = clean;
    c.scale_q[0] = c.scale_k[1] = c.scale_v[2] = -0.0f;  // has the effect of 0
    check(c, test::run_case(device(), c));
  }
}

TEST_CASE("scales of V may all be as small or as large as fp32 has them") {
  if (!has_kernels()) return;
  for (const float scale : {1e-37f, 1e-30f, 1e-23f, 1e-15f, 1.0f, 1e20f, 1e35f}) {
    CAPTURE(scale);
    Case c = test::make_case(problem_of_blocks(), 32);
    for (float& of_block : c.scale_v) of_block = scale;
    check(c, test::run_case(device(), c));
  }
}

TEST_CASE("a promoted sum follows scales of V that grow after it") {
  if (!has_kernels()) return;
  constexpr std::int64_t kBlock = 64;
  Problem problem = test::problem_of(70, 24 * kBlock, 64, 64, dense());
  problem.dtype = Dtype::kFloat8E4M3;
  problem.scale_blocks.v = kBlock;
  Case c = test::make_case(problem, 12);
  for (std::size_t block = 0; block < c.scale_v.size(); ++block) {
    c.scale_v[block] = 1.0f + static_cast<float>(block % 24) / 4;
  }
  check(c, test::run_case(device(), c));
}

TEST_CASE("scores are right up to 2^24 in base 2, and beyond O is NaN and never looks right") {
  if (!has_kernels()) return;
  for (const bool folded : {true, false}) {
    CAPTURE(folded);
    Problem problem = problem_of_blocks();
    if (!folded) problem.score.scale = -0.125;
    const Case drawn = test::make_case(problem, 33);
    for (const int exponent : {0, 12, 17, 24, 25, 28, 31, 60, 100}) {
      CAPTURE(exponent);
      Case c = drawn;
      for (float& scale : c.scale_q) scale = std::ldexp(1.0f, exponent);
      for (float& scale : c.scale_k) scale = 1.0f;
      const DeviceAnswer answer = test::run_case(device(), c);
      if (exponent <= 17) {  // then products of 64 such numbers are below 2^7
        check(c, answer);
        continue;
      }
      for (std::int64_t row = 0; row < 64; ++row) {
        CHECK(std::isnan(first_of(answer, row)));
        CHECK(answer.lse[static_cast<std::size_t>(row)] != -kInfinity);  // an empty row has -inf
      }
    }
  }
}

}  // namespace
