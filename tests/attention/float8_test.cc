// e4m3 operands with scales on the device that --device names, compared with the oracle. If the
// device is not sm_90a, they must be refused.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "annulus/types.h"
#include "attention/on_device.h"
#include "attention/oracle/taint.h"
#include "attention/tiles/tile_list.h"
#include "base/half.h"
#include "support/options.h"

namespace {

using namespace annulus;
using test::Case;
using test::check;
using test::device;
using test::DeviceAnswer;

bool has_kernels() { return device().info().architecture == "sm_90a"; }

Problem float8_problem(std::int64_t seq_q, std::int64_t seq_k, std::int64_t dim,
                       const Pattern& pattern) {
  Problem problem = test::problem_of(seq_q, seq_k, dim, dim, pattern);
  problem.dtype = Dtype::kFloat8E4M3;
  return problem;
}

// An element of the output. It is NaN at `nowhere`.
float written(const DeviceAnswer& answer, std::int64_t row, std::int64_t d) {
  const std::int64_t at = answer.o.offset(0, row, 0) + d;
  return base::bf16_to_float(answer.o.bits[static_cast<std::size_t>(at)]);
}

TEST_CASE("devices without wgmma refuse e4m3 and say what to do") {
  if (has_kernels()) return;
  try {
    device().plan(float8_problem(64, 64, 64, dense()));
    FAIL("was planned");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kUnsupported);
    CAPTURE(error.what());
    CHECK(std::string(error.what()).find("convert Q, K and V to bf16") != std::string::npos);
  }
}

TEST_CASE("random problems of e4m3 match the oracle") {
  if (!has_kernels()) return;
  const int count = test::options().problems > 0 ? test::options().problems : 6;
  test::CaseLimits limits;
  limits.float8 = true;
  if (test::options().length > 0) limits.max_length = test::options().length;
  for (int index = 0; index < count; ++index) {
    const Case c =
        test::random_case(test::options().seed + 8, static_cast<std::uint64_t>(index), limits);
    CAPTURE(index);
    CAPTURE(c.text);
    REQUIRE_NOTHROW(check(c, test::run_case(device(), c)));
  }
}

TEST_CASE("scales that are not given are 1") {
  if (!has_kernels()) return;
  Case c = test::make_case(float8_problem(70, 200, 64, causal()), 3);
  for (auto* scales : {&c.scale_q, &c.scale_k, &c.scale_v}) {
    std::fill(scales->begin(), scales->end(), 1.0f);
  }
  const DeviceAnswer ones = test::run_case(device(), c);
  check(c, ones);
  for (auto* scales : {&c.scale_q, &c.scale_k, &c.scale_v}) scales->clear();
  CHECK(test::run_case(device(), c) == ones);
}

TEST_CASE("outlier channels, and blocks of very different size, stay within tolerance") {
  if (!has_kernels()) return;
  Problem problem = float8_problem(130, 400, 128, dense());
  problem.heads = 2;
  problem.scale_blocks = {64, 64, 64};
  Case c = test::make_case(problem, 5);
  // Two channels of K are thirty times as large as the others, and the same channels of Q are
  // smaller by that factor.
  for (std::int64_t row = 0; row < problem.seq_k; ++row) {
    for (const std::int64_t channel : {3, 77}) {
      const std::int64_t at = c.k.offset(0, row, 0) + channel;
      const float value = base::e4m3_to_float(
          reinterpret_cast<const std::uint8_t*>(c.k.bits.data())[static_cast<std::size_t>(at)]);
      c.k.set(at, base::float_to_e4m3(30 * value));
    }
  }
  // The scales of V range from a ten-thousandth to ten thousand, and rise and fall from block to
  // block.
  for (std::size_t i = 0; i < c.scale_v.size(); ++i) {
    c.scale_v[i] = i % 3 == 0 ? 1e-4f : i % 3 == 1 ? 1.0f : 1e4f;
  }
  check(c, test::run_case(device(), c));
  std::reverse(c.scale_v.begin(), c.scale_v.end());
  check(c, test::run_case(device(), c));
  std::fill(c.scale_v.begin(), c.scale_v.end(), 3e-12f);
  check(c, test::run_case(device(), c));
}

TEST_CASE("a block whose scale is 0 still counts") {
  if (!has_kernels()) return;
  Problem problem = float8_problem(64, 256, 64, dense());
  problem.scale_blocks = {0, 64, 64};
  Case c = test::make_case(problem, 6);
  c.scale_k = {1, 0, 1, 1};  // the scores of the second block are 0
  c.scale_v = {0, 1, 0, 2};
  check(c, test::run_case(device(), c));
  c.scale_v = {0, 0, 0, 0};
  const DeviceAnswer answer = test::run_case(device(), c);
  check(c, answer);
  for (std::int64_t row = 0; row < 64; ++row) CHECK(written(answer, row, 5) == 0);
}

TEST_CASE("a NaN, of an element or a scale, reaches the rows that read its tile and no others") {
  if (!has_kernels()) return;
  Problem problem = float8_problem(256, 256, 64, causal());
  problem.scale_blocks = {64, 64, 64};
  const std::uint8_t nan = 0x7f;
  for (int where = 0; where < 5; ++where) {
    CAPTURE(where);
    Case c = test::make_case(problem, 7);
    const float bad = std::numeric_limits<float>::quiet_NaN();
    if (where == 0) c.q.set(c.q.offset(0, 100, 0) + 9, nan);
    if (where == 1) c.k.set(c.k.offset(0, 150, 0) + 9, nan);
    if (where == 2) c.v.set(c.v.offset(0, 150, 0) + 9, nan);
    if (where == 3) c.scale_k[2] = bad;
    if (where == 4) c.scale_v[2] = bad;
    const Plan plan = device().plan(problem);
    const DeviceAnswer answer = test::run_case(device(), c);
    const auto reached =
        attention::rows_reached(problem, c.inputs(),
                                attention::make_tile_list(problem, plan.info().tile_rows,
                                                          plan.info().tile_columns, nullptr));
    const auto comparison = annulus::compare(
        problem, attention::reference(problem, c.inputs(), test::pool()), answer.result(),
        [&](std::int64_t row) { return reached[static_cast<std::size_t>(row)] != 0; });
    CAPTURE(comparison.first_wrong);
    CHECK(comparison.within_tolerance);
    CHECK(comparison.tainted_rows < 256);
    const std::int64_t reader = where == 0 ? 100 : 250;  // a row that sees the NaN or infinity
    CHECK(std::isnan(written(answer, reader, 9)));
  }
}

TEST_CASE("keys of e4m3 split over launches give the answer of one launch") {
  if (!has_kernels()) return;
  Problem problem = float8_problem(140, 320, 128, causal() & ~window(40, 0));
  problem.heads = 2;
  problem.scale_blocks = {32, 64, 32};
  const Case whole = test::make_case(problem, 8, test::Order::kBshd);
  for (const std::int64_t cut : {0, 64, 192}) {
    CAPTURE(cut);
    const auto part_of = [&](std::int64_t begin, std::int64_t end) {
      Case part = whole;
      part.problem.seq_k = end - begin;
      part.problem.q0 = whole.problem.q_position();
      part.problem.k0 = begin;
      for (test::HostTensor* tensor : {&part.k, &part.v}) {
        const std::int64_t bytes = begin * tensor->strides.row;
        tensor->bits.erase(tensor->bits.begin(), tensor->bits.begin() + bytes / 2);
        tensor->rows = end - begin;
      }
      const auto blocks = [&](std::vector<float>* scales, std::int64_t block) {
        const auto first = static_cast<std::ptrdiff_t>(begin / block);
        const auto last = static_cast<std::ptrdiff_t>((end + block - 1) / block);
        *scales = std::vector<float>(scales->begin() + first, scales->begin() + last);
      };
      blocks(&part.scale_k, 64);
      blocks(&part.scale_v, 32);
      return part;
    };
    Case first = part_of(0, cut);
    first.problem.want_lse = false;
    first.problem.carry_out = true;
    const DeviceAnswer state = test::run_case(device(), first);
    check(first, state);
    Case second = part_of(cut, problem.seq_k);
    second.problem.carry_in = true;
    second.state_in = state.state;
    check(whole, test::run_case(device(), second));
  }
}

// The matrix products of a warp in each step, for Q K^T and for P V.
struct Products {
  std::int64_t dim_qk, dim_v;
  const char* config;
  std::uint64_t scores, values;
};

TEST_CASE("where nothing is promoted, products with V come 32 columns at a time") {
  if (!has_kernels() || !device().info().simulated) return;
  for (const Products& products : {Products{128, 128, "wgmma8 m128 n128 w8 s2", 4, 4},
                                   Products{128, 128, "wgmma8 m128 n128 w8 s3", 4, 4},
                                   Products{128, 128, "wgmma8 m128 n96 w8 s4", 4, 3 * 4},
                                   Products{192, 128, "wgmma8 m128 n128 w8 s2", 6, 4},
                                   Products{192, 192, "wgmma8 m128 n96 w8 s2", 6, 3 * 6},
                                   Products{256, 256, "wgmma8 m128 n64 w8 s2", 8, 2 * 8}}) {
    CAPTURE(products.config);
    CAPTURE(products.dim_qk);
    Problem problem = float8_problem(190, 500, products.dim_qk, causal());
    problem.dim_v = products.dim_v;
    problem.carry_in = true;
    problem.scale_blocks = {64, 32, 64};
    const Case c = test::make_case(problem, 10);
    PlanOptions options;
    options.config = products.config;
    const auto matrix = [](const Counters& counters) {
      for (const auto& [name, count] : counters) {
        if (name == "matrix") return count;
      }
      return std::uint64_t{0};
    };
    device().counters(true);
    check(c, test::run_case(device(), c, options));
    const std::uint64_t counted = matrix(device().counters(true));
    const PlanInfo info = device().plan(problem, options).info();
    const auto steps = static_cast<std::uint64_t>(info.full_tiles + info.partial_tiles);
    const auto warps = static_cast<std::uint64_t>(info.threads / 32 - 4);
    CHECK(counted == warps * steps * (products.scores + products.values));
  }
}

TEST_CASE("the order of warps and of copies does not change a bit of e4m3") {
  if (!has_kernels() || !device().info().simulated) return;
  Problem problem = float8_problem(150, 900, 128, causal());
  const Case c = test::make_case(problem, 9);
  PlanOptions options;
  options.max_multiprocessors = 1;
  const DeviceAnswer first = test::run_case(device(), c, options);
  check(c, first);
  for (std::uint64_t order = 1; order <= 4; ++order) {
    SimulationOptions simulation;
    simulation.seed = order;
    device().set_simulation(simulation);
    CHECK(test::run_case(device(), c, options) == first);
  }
  device().set_simulation({});
}

}  // namespace
