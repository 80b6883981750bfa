// Clusters, whose CTAs copy K and V once for the whole cluster. They are tested over heads and over
// tile rows, with rows beyond the last, with works of different lengths, with one cluster for all
// works, and with more clusters than works.

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "annulus/device.h"
#include "base/thread_pool.h"
#include "support/device.h"
#include "support/device_case.h"

namespace {

using namespace annulus;

struct Clustered {
  const char* config;
  std::int64_t dim;
  bool heads;  // true: over heads; false: over tile rows
};
// O in separate memory and through Q's; steps of one tile, of which each CTA copies half, and of
// two tiles.
constexpr Clustered kCases[] = {
    {"wgmma m128 n128 w8 s2 c2", 128, true},    {"wgmma m128 n128 w8 s2 c2", 128, false},
    {"wgmma m128 n64 w8 s2 c2", 256, true},     {"wgmma m128 n64 w8 s2 c2", 256, false},
    {"wgmma m64 n64 w8 s2 b2 h2 c2", 64, true}, {"wgmma m64 n64 w8 s2 b2 h2 c2", 64, false},
    {"wgmma m128 n48 w8 s3 b2 c2", 96, true},   {"wgmma m64 n96 w4 s2 c2", 128, false},
    {"wgmma8 m128 n64 w8 s2 b2 c2", 128, true}, {"wgmma8 m128 n128 w8 s2 c2", 64, false},
};

TEST_CASE("CTAs of a cluster share what is copied of K and V") {
  const Device device = Device::open(test::device_name());
  if (device.info().architecture != "sm_90a") return;
  base::ThreadPool pool;
  std::uint64_t seed = 60;
  for (const Clustered& of : kCases) {
    CAPTURE(of.config);
    CAPTURE(of.heads);
    const bool float8 = std::string(of.config).starts_with("wgmma8");
    const bool in_cta = std::string(of.config).find(" h2") != std::string::npos;
    for (int variant = 0; variant < 3; ++variant) {
      CAPTURE(variant);
      Problem problem;
      problem.batch = 2;
      problem.heads = 4;
      problem.kv_heads = 4 / (of.heads ? 2 : 1) / (in_cta ? 2 : 1);
      problem.dim_qk = problem.dim_v = of.dim;
      problem.seq_q = 3 * 128 - 7;  // the second pair has no second tile row
      problem.seq_k = 400 + 64 * variant;
      problem.want_lse = variant != 1;
      problem.carry_in = variant == 1;
      problem.carry_out = variant == 1;
      if (float8) {
        problem.dtype = Dtype::kFloat8E4M3;
        problem.scale_blocks = {64, 32, 64};
      }
      if (of.heads) {
        // Rows that see nothing, then a list, then arithmetic.
        if (variant == 0) problem.q0 = -130;
        problem.pattern = variant == 1 ? causal() & strided(4, 1, 32) : causal();
      }
      const test::Case c = test::make_case(problem, seed++);
      PlanOptions options;
      options.config = of.config;
      options.max_multiprocessors = variant == 2 ? 2 : variant == 1 ? 7 : 0;
      const test::DeviceAnswer answer = test::run_case(device, c, options);
      const Comparison comparison = annulus::compare(
          c.problem, attention::reference(c.problem, c.inputs(), pool), answer.result());
      CAPTURE(comparison.first_wrong);
      CHECK(comparison.within_tolerance);
      if (variant != 2) continue;  // left out to save compile time
      // Shared copies change no bit of the answer. So the configuration without its last field, the
      // cluster, gives the same answer.
      const std::string text = of.config;
      options.config = text.substr(0, text.size() - 3);
      CHECK(test::run_case(device, c, options) == answer);
    }
  }
}

// Lists whose tile rows see the same keys in pairs. In one layout a block has two tile rows, every
// head has different blocks, and rows see nothing or have different lengths. Another layout keeps
// everything, and its last pair has only one row.
TEST_CASE("tile rows of a list share copies where they see the same in pairs") {
  const Device device = Device::open(test::device_name());
  if (device.info().architecture != "sm_90a") return;
  base::ThreadPool pool;
  for (const char* config : {"wgmma m128 n128 w8 s2", "wgmma m128 n64 w8 s2 b2"}) {
    for (const bool everything : {false, true}) {
      CAPTURE(config);
      CAPTURE(everything);
      Problem problem;
      problem.heads = problem.kv_heads = 2;
      problem.dim_qk = problem.dim_v = 128;
      problem.seq_k = 700;
      problem.seq_q = everything ? 3 * 128 - 5 : 4 * 256 - 9;
      problem.want_lse = true;
      const std::int64_t rows = everything ? 128 : 256;
      BlockLayout layout = {rows, 128, problem.seq_q, problem.seq_k, 2, {0}, {}, {}};
      for (std::int64_t i = 0; i < 2 * layout.rows(); ++i) {
        for (std::int32_t column = 0; column < 6; ++column) {
          if (everything || (i % 4 != 1 && (column + i) % 3 < 1 + i % 2)) {
            layout.indices.push_back(column);
          }
        }
        layout.indptr.push_back(static_cast<std::int64_t>(layout.indices.size()));
      }
      problem.pattern = blocks(layout);
      const test::Case c = test::make_case(problem, 5);
      PlanOptions options;
      options.config = std::string(config) + " c2";
      const test::DeviceAnswer answer = test::run_case(device, c, options);
      const Comparison comparison = annulus::compare(
          c.problem, attention::reference(c.problem, c.inputs(), pool), answer.result());
      CAPTURE(comparison.first_wrong);
      CHECK(comparison.within_tolerance);
      options.config = config;
      CHECK(test::run_case(device, c, options) == answer);
    }
  }
}

TEST_CASE("clusters ask for half of K and V") {
  const Device device = Device::open(test::device_name());
  if (device.info().architecture != "sm_90a" || !device.info().simulated) return;
  Problem problem;
  problem.heads = problem.kv_heads = 2;
  problem.seq_q = 256;
  problem.seq_k = 1024;
  problem.dim_qk = problem.dim_v = 128;
  const test::Case c = test::make_case(problem, 1);
  const auto sectors = [&](const char* config) {
    PlanOptions options;
    options.config = config;
    device.counters(true);
    test::run_case(device, c, options);
    for (const auto& [name, value] : device.counters()) {
      if (name == "global_sectors_read") return static_cast<std::int64_t>(value);
    }
    return std::int64_t{0};
  };
  const std::int64_t kv = 2 * 1024 * 128 * 2 / 32;  // sectors of one head
  CHECK(sectors("wgmma m128 n128 w8 s2") - sectors("wgmma m128 n128 w8 s2 c2") == 2 * kv);
}

}  // namespace
